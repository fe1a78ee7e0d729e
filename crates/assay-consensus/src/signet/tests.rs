use super::*;
use crate::commitment::WITNESS_COMMITMENT_HEADER;
use crate::script::Scripted;
use assay_testkit::chain::{TxBuilder, block_of, coinbase, txids};
use assay_testkit::hex;
use assay_wire::BlockHash;

fn solved(params: &ChainParams, block: &Block, answer: bool) -> (bool, Vec<[u8; 32]>) {
    let mut checker = Scripted::new(answer);
    let verdict = check_signet_solution(params, block, &txids(block), &mut checker);
    (verdict.is_ok(), checker.asked.into_iter().map(|(.., message)| message).collect())
}

/// Returns `true` if a block with these bytes after the commitment solves the challenge `TRUE`.
fn trivially_solved(after_commitment: Option<&[u8]>) -> bool {
    let mut cb = coinbase(100, 1);
    if let Some(more) = after_commitment {
        let script = [&WITNESS_COMMITMENT_HEADER[..], &[0; 32], more].concat();
        cb = cb.output(0, &script);
    }
    let block = block_of(
        &[cb.bytes(), TxBuilder::new(1).input(1, 0, &[], 0).output(0, &[]).bytes()],
        Encoding::Segwit,
    );
    solved(&ChainParams::custom_signet(vec![0x51]), &block, false).0
}

/// The same cases as in Core's `validation_tests.cpp`, `signet_parse_tests`.
#[test]
fn solutions_are_parsed_to_the_last_byte() {
    assert!(!trivially_solved(None), "a commitment is required");
    assert!(trivially_solved(Some(&[])), "a challenge that needs no solution");
    let with = |solution: &[u8]| {
        let data = [&SIGNET_HEADER[..], solution].concat();
        let mut script = Vec::new();
        asm::push(&mut script, &data);
        trivially_solved(Some(&script))
    };
    assert!(with(&[]), "a header without data is no solution");
    assert!(with(&[0, 0]), "empty script, empty witness");
    assert!(!with(&[0]), "the witness is missing");
    assert!(!with(&[0, 0, 0]), "a byte too many");
    assert!(!with(&[2, 0]), "a script cut off");
    assert!(!with(&[0, 1]), "a witness cut off");
    assert!(!with(&[0, 1, 5, 1]), "an item cut off, though bytes follow in the transaction");
    assert!(!with(&[0, 1, 0]), "a witness where none is expected");
    assert!(!with(&[0, 1, 0, 0]), "a byte after the witness");
    assert!(!with(&[253, 0, 0, 0]), "a length not in the shortest form");
    assert!(!with(&[255; 9]), "a length beyond all memory");
    assert!(!with(&[1, 0x61, 0, 0]), "a byte after the witness of a longer script");
}

#[test]
fn commitments_are_rewritten_without_the_solution() {
    let check = |script: &[u8], rewritten: &[u8], solution: Option<&[u8]>| {
        assert_eq!(take_solution(script), (rewritten.to_vec(), solution.map(<[u8]>::to_vec)));
    };
    let [a, b, c, d] = SIGNET_HEADER;
    check(&[0x6a, 1, 9], &[0x6a, 1, 9], None);
    check(&[0x6a, 4, a, b, c, d], &[0x6a, 4, a, b, c, d], None);
    check(&[0x6a, 5, a, b, c, d, 9], &[0x6a, 4, a, b, c, d], Some(&[9]));
    check(
        &[op::PUSHDATA1, 5, a, b, c, d, 9, 5, a, b, c, d, 8, op::PUSHDATA1, 1, 7],
        &[4, a, b, c, d, 5, a, b, c, d, 8, 1, 7],
        Some(&[9]),
    );
    // Cut-off bytes vanish, and an empty push loses its length.
    check(&[5, a, b, c, d, 9, op::PUSHDATA1, 0, 3, 1], &[4, a, b, c, d, op::PUSHDATA1], Some(&[9]));
}

/// Block 1 of the public signet.
const BLOCK_1: &str = "\
00000020f61eee3b63a380a477a063af32b2bbc97c9ff9f01f2c4225e973988108000000f575c83235984e7dc4afc1f3\
0944c170462e84437ab6f2d52e16878a79e4678bd1914d5fae77031eccf4070001010000000001010000000000000000\
000000000000000000000000000000000000000000000000ffffffff025151feffffff0200f2052a0100000016001492\
43f727dd5343293eb83174324019ec16c2630f0000000000000000776a24aa21a9ede2f61c3f71d1defd3fa999dfa369\
53755c690689799962b48bebd836974e8cf94c4fecc7daa2490047304402205e423a8754336ca99dbe16509b877ef1bf\
98d008836c725005b3c787c41ebe46022047246e4467ad7cc7f1ad98662afcaf14c115e0095a227c7b05c5182591c23e\
7e01000120000000000000000000000000000000000000000000000000000000000000000000000000";

#[test]
fn the_first_block_of_the_public_signet() {
    let params = ChainParams::by_name("signet").expect("signet is known");
    let block = Block::parse(hex::decode(BLOCK_1), Encoding::Segwit).expect("a real block parses");
    let hash: BlockHash = "00000086d6b2636cb2a392d45edc4ec544a10024d30141c9adf4bfd9de533b53"
        .parse()
        .expect("64 digits");
    assert_eq!(block.hash(), hash);
    assert_eq!(block.header().prev_block, params.genesis_hash);
    assert_eq!(crate::header::check_header(&params, block.header(), &hash), Ok(()));
    assert_eq!(crate::block::check_block(&params, &block, &txids(&block)), Ok(()));
    let (valid, messages) = solved(&params, &block, true);
    assert!(valid);
    // The message that the signature in the block is known to be valid for.
    assert_eq!(messages, [crate::hex::bytes(SIGNED_MESSAGE)]);
    assert!(!solved(&params, &block, false).0, "the signature decides");

    let mut changed = hex::decode(BLOCK_1);
    changed[68] ^= 1;
    let other = Block::parse(changed, Encoding::Segwit).expect("only the time differs");
    assert_ne!(solved(&params, &other, true).1, messages, "the header is signed");
}

const SIGNED_MESSAGE: &str = "dc0814e6088a9825be302b6da1ec13ca02aba4c94a4b6b5ea0265fde639cfd2d";

#[test]
fn chains_without_a_challenge_and_genesis_need_no_solution() {
    let signet = ChainParams::by_name("signet").expect("signet is known");
    let genesis = Block::parse(signet.genesis_block(), signet.encoding).expect("genesis parses");
    assert!(solved(&signet, &genesis, false).0);
    let regtest = ChainParams::by_name("regtest").expect("regtest is known");
    let block = block_of(&[coinbase(100, 1).bytes()], Encoding::Segwit);
    assert!(solved(&regtest, &block, false).0);
    let (valid, _) = solved(&signet, &block, true);
    assert!(!valid);
    assert_eq!(BlockError::SignetSolution.reject_reason(), "bad-signet-blksig");
}
