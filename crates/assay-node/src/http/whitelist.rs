//! Method whitelists by user (Core `httprpc.cpp`, `-rpcwhitelist`).

use std::collections::{HashMap, HashSet};

#[derive(Debug, Clone, Default)]
pub struct Whitelist {
    users: HashMap<String, HashSet<String>>,
    is_closed: bool,
}

impl Whitelist {
    /// Parses lists of the form `user:method,method`. Several lists of one user are intersected. With `is_closed`,
    /// users without a list may call nothing, otherwise everything.
    pub fn new<'t>(lists: impl IntoIterator<Item = &'t str>, is_closed: bool) -> Self {
        let mut users: HashMap<String, HashSet<String>> = HashMap::new();
        for list in lists {
            let (user, methods) = match list.split_once(':') {
                Some((user, methods)) => (user, Some(methods)),
                None => (list, None),
            };
            let is_known = users.contains_key(user);
            let known = users.entry(user.to_owned()).or_default();
            let Some(methods) = methods else { continue };
            let mut methods: HashSet<String> =
                methods.split([',', ' ']).map(ToOwned::to_owned).collect();
            if is_known {
                methods.retain(|method| known.contains(method));
            }
            *known = methods;
        }
        Self { users, is_closed }
    }

    pub(crate) fn allows(&self, user: &str, method: &str) -> bool {
        self.users.get(user).map_or(!self.is_closed, |methods| methods.contains(method))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lists_of_one_user_are_intersected() {
        let lists = ["a:x,y", "b", "c:x, y", "c:y,z", "d:"];
        for is_closed in [false, true] {
            let list = Whitelist::new(lists, is_closed);
            for (user, method, expected) in [
                ("a", "x", true),
                ("a", "z", false),
                ("b", "x", false),
                ("c", "x", false),
                ("c", "y", true),
                ("d", "x", false),
                ("e", "x", !is_closed),
            ] {
                assert_eq!(list.allows(user, method), expected, "{user} {method} {is_closed}");
            }
        }
        assert!(Whitelist::default().allows("a", "x"));
    }
}
