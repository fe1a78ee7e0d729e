//! Hash addresses in the compressed form for SHA2: FIPS 205, section 11.2.

/// An address without its last two words: layer, tree, type, key pair.
pub(crate) type AddressPrefix = [u8; 14];

/// Address types, FIPS 205 table 1.
#[derive(Clone, Copy)]
pub(crate) enum Kind {
    WotsHash = 0,
    WotsKey = 1,
    Tree = 2,
    ForsTree = 3,
    ForsRoots = 4,
}

/// `key_pair` is zero for tree nodes.
pub(crate) fn address_prefix(layer: usize, tree: u64, kind: Kind, key_pair: u32) -> AddressPrefix {
    let mut place = [0; 14];
    place[0] = layer as u8;
    place[1..9].copy_from_slice(&tree.to_be_bytes());
    place[9] = kind as u8;
    place[10..].copy_from_slice(&key_pair.to_be_bytes());
    place
}

/// The whole address; `words` are chain and hash number, or height and index, or zeros.
pub(crate) fn address(place: &AddressPrefix, words: [u32; 2]) -> [u8; 22] {
    let mut address = [0; 22];
    address[..14].copy_from_slice(place);
    address[14..18].copy_from_slice(&words[0].to_be_bytes());
    address[18..].copy_from_slice(&words[1].to_be_bytes());
    address
}
