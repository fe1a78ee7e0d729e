//! Recipes: any text is a recipe or an explanation.

#![no_main]

use assay_forge::Recipe;
use libfuzzer_sys::fuzz_target;

fuzz_target!(|data: &[u8]| {
    let Ok(text) = std::str::from_utf8(data) else { return };
    match Recipe::from_toml(text) {
        Ok(recipe) => {
            // One that extends a built-in history hashes that as well, so only that the text is hashed can be asked.
            assert_eq!(
                Recipe::from_toml(text).map(|again| again.sha256()).ok(),
                Some(recipe.sha256())
            );
            let longer = format!("{text}\n#");
            assert_ne!(
                Recipe::from_toml(&longer).map(|longer| longer.sha256()).ok(),
                Some(recipe.sha256())
            );
            let _ = (recipe.name(), recipe.network());
        }
        Err(error) => assert!(!error.to_string().is_empty()),
    }
});
