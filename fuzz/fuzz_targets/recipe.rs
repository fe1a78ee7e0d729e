//! Recipes: any text is a recipe or an explanation.

#![no_main]

use assay_forge::Recipe;
use libfuzzer_sys::fuzz_target;

fuzz_target!(|data: &[u8]| {
    let Ok(text) = std::str::from_utf8(data) else { return };
    match Recipe::from_toml(text) {
        Ok(recipe) => {
            assert_eq!(recipe.sha256(), assay_hash::sha256(data));
            let _ = (recipe.name(), recipe.network());
        }
        Err(error) => assert!(!error.to_string().is_empty()),
    }
});
