//! Objects and arrays, with the commas between their values.

use std::fmt::Display;

use crate::value;

/// The position of one value; each method writes the value and consumes the position.
#[derive(Debug)]
#[must_use = "a place without a value is malformed JSON"]
pub struct Json<'a> {
    out: &'a mut Vec<u8>,
}

impl<'a> Json<'a> {
    pub fn new(out: &'a mut Vec<u8>) -> Self {
        Self { out }
    }

    pub fn null(self) {
        self.out.extend_from_slice(b"null");
    }

    pub fn bool(self, value: bool) {
        value::bool(self.out, value);
    }

    pub fn int(self, value: impl Into<i128>) {
        value::push_int(self.out, value.into());
    }

    pub fn count(self, value: usize) {
        value::push_int(self.out, value as i128);
    }

    /// Writes a real number with 16 significant digits, as C's `%.16g` does.
    pub fn real(self, value: f64) {
        value::real(self.out, value);
    }

    /// Writes an amount of satoshis in coins, always with eight decimals.
    pub fn amount(self, sat: i64) {
        value::amount(self.out, sat);
    }

    /// Writes a string with JSON escapes.
    pub fn string(self, value: &str) {
        value::string(self.out, value);
    }

    /// Writes `value` as a string; its text must need no escapes (hashes, hex numbers).
    pub fn text(self, value: impl Display) {
        self.out.push(b'"');
        value::display(self.out, value);
        self.out.push(b'"');
    }

    /// Writes bytes as a string of lower-case hex digits.
    pub fn hex(self, bytes: &[u8]) {
        value::hex(self.out, bytes);
    }

    /// Writes existing JSON text.
    pub fn raw(self, json: &str) {
        self.out.extend_from_slice(json.as_bytes());
    }

    pub fn object(self) -> Object<'a> {
        self.out.push(b'{');
        Object { out: self.out, empty: true }
    }

    pub fn array(self) -> Array<'a> {
        self.out.push(b'[');
        Array { out: self.out, empty: true }
    }

    /// Writes an array of what `each` writes of the items.
    pub fn list<T>(self, items: impl IntoIterator<Item = T>, mut each: impl FnMut(T, Json<'_>)) {
        let mut array = self.array();
        items.into_iter().for_each(|item| each(item, array.item()));
    }

    /// Writes an array of objects, to which `each` adds the members.
    pub fn objects<T>(
        self,
        items: impl IntoIterator<Item = T>,
        mut each: impl FnMut(T, &mut Object<'_>),
    ) {
        self.list(items, |item, json| each(item, &mut json.object()));
    }
}

/// An object being written, until it is dropped.
#[derive(Debug)]
pub struct Object<'a> {
    out: &'a mut Vec<u8>,
    empty: bool,
}

impl Object<'_> {
    /// The position of the value of member `name` (which must need no escapes).
    pub fn key(&mut self, name: impl Display) -> Json<'_> {
        if !std::mem::take(&mut self.empty) {
            self.out.push(b',');
        }
        self.out.push(b'"');
        value::display(self.out, name);
        self.out.extend_from_slice(b"\":");
        Json { out: self.out }
    }

    /// Ends the object, so that its parent can go on.
    pub fn end(self) {}
}

impl Drop for Object<'_> {
    fn drop(&mut self) {
        self.out.push(b'}');
    }
}

/// An array being written, until it is dropped.
#[derive(Debug)]
pub struct Array<'a> {
    out: &'a mut Vec<u8>,
    empty: bool,
}

impl Array<'_> {
    pub fn item(&mut self) -> Json<'_> {
        if !std::mem::take(&mut self.empty) {
            self.out.push(b',');
        }
        Json { out: self.out }
    }

    /// Ends the array, so that its parent can go on.
    pub fn end(self) {}
}

impl Drop for Array<'_> {
    fn drop(&mut self) {
        self.out.push(b']');
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn nesting_puts_commas_between_members_only() {
        let mut out = Vec::new();
        let mut object = Json::new(&mut out).object();
        object.key("a").int(1);
        let mut array = object.key("b").array();
        array.item().null();
        array.item().bool(true);
        array.item().hex(&[0, 0xab]);
        array.end();
        object.key("c").object().end();
        object.key("d").array().end();
        object.key("e").list([1, 2], |number, json| json.int(number));
        object.key("f").objects([3, 4], |number, object| object.key("g").int(number));
        drop(object);
        let expected =
            br#"{"a":1,"b":[null,true,"00ab"],"c":{},"d":[],"e":[1,2],"f":[{"g":3},{"g":4}]}"#;
        assert_eq!(out, expected);
    }
}
