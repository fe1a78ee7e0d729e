//! A slab: numbered, reusable slots.

/// Values with indices that stay valid until removal.
#[derive(Debug)]
pub(super) struct Slab<T> {
    places: Vec<Option<T>>,
    free: Vec<u32>,
}

impl<T> Default for Slab<T> {
    fn default() -> Self {
        Self { places: Vec::new(), free: Vec::new() }
    }
}

impl<T> Slab<T> {
    pub(super) fn insert(&mut self, value: T) -> u32 {
        if let Some(number) = self.free.pop() {
            self.places[number as usize] = Some(value);
            return number;
        }
        let number =
            u32::try_from(self.places.len()).expect("fewer than 2^32 transactions fit into memory");
        self.places.push(Some(value));
        number
    }

    pub(super) fn remove(&mut self, number: u32) -> Option<T> {
        let value = self.places.get_mut(number as usize)?.take()?;
        self.free.push(number);
        Some(value)
    }

    pub(super) fn get(&self, number: u32) -> Option<&T> {
        self.places.get(number as usize)?.as_ref()
    }

    pub(super) fn get_mut(&mut self, number: u32) -> Option<&mut T> {
        self.places.get_mut(number as usize)?.as_mut()
    }
}
