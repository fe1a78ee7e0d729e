//! Primes of base fields that have kernels of their own (`backend/shifted.rs`,
//! `backend/complex.rs`); curves document their derivation.

pub(crate) const BLS12_381: [u64; 6] = [
    0xb9fe_ffff_ffff_aaab,
    0x1eab_fffe_b153_ffff,
    0x6730_d2a0_f6b0_f624,
    0x6477_4b84_f385_12bf,
    0x4b1b_a7b6_434b_acd7,
    0x1a01_11ea_397f_e69a,
];

pub(crate) const BLS12_377: [u64; 6] = [
    0x8508_c000_0000_0001,
    0x170b_5d44_3000_0000,
    0x1ef3_622f_ba09_4800,
    0x1a22_d9f3_00f5_138f,
    0xc63b_05c0_6ca1_493b,
    0x01ae_3a46_17c5_10ea,
];

pub(crate) const BN254: [u64; 4] =
    [0x3c20_8c16_d87c_fd47, 0x9781_6a91_6871_ca8d, 0xb850_45b6_8181_585d, 0x3064_4e72_e131_a029];

pub(crate) const BN254_NOGAMI: [u64; 4] =
    [0xa700_0000_0000_0013, 0x6121_0000_0000_0013, 0xba34_4d80_0000_0008, 0x2523_6482_4000_0001];
