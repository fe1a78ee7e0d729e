//! Published figures: Constantine's, which report 5 is about, and those of other libraries on other machines.

use assay_bench::published::PublishedFile;
use assay_bench::suite::Published;

const FIGURES: &str = include_str!("../../../../plans/published/pairing-curves.toml");

/// All published figures.
pub(super) fn all() -> Vec<Published> {
    PublishedFile::built_in(FIGURES).figures()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn figures_are_of_the_size_of_their_operation() {
        let all = all();
        assert_eq!(all.len(), 128);
        let ns = |subject: &str, benchmark: &str| {
            let found = all.iter().find(|one| one.subject == subject && one.benchmark == benchmark);
            found.and_then(|one| one.ns_per_op)
        };
        assert_eq!(ns("Constantine, clang", "bls12-381/pairing"), Some(384_400.0));
        assert_eq!(ns("Constantine, clang", "bls12-381/g1-msm-one-thread/65536"), Some(273.7e6));
        assert_eq!(ns("c-kzg", "kzg/commit"), Some(29.857e6));
    }
}
