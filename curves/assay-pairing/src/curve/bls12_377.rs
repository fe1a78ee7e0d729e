//! The groups of BLS12-377. The cofactor of the first, `(x - 1)^2 / 3`, is even.

use super::bls12;
use crate::bls12_377::{Fp, FpModulus, FrModulus, Parameters, X};
use crate::tower::Fp2;

/// The group over the base field, on `y^2 = x^3 + 1`.
pub type G1 = bls12::G1<Parameters>;

/// The group over Fp2, on the twist `y^2 = x^3 + 1 / u`.
pub type G2 = bls12::G2<Parameters>;

const fn fp(limbs: [u64; 6]) -> Fp {
    Fp::from_limbs(limbs).expect("a constant below the prime")
}

impl bls12::Parameters for Parameters {
    type Base = FpModulus;
    type Scalar = FrModulus;
    const X: u64 = X;
    const IS_NEGATIVE: bool = false;
    const BETA_ROOT: u64 = 2;
    const G1: [Fp; 2] = [
        fp([
            0xeab9_b16e_b21b_e9ef,
            0xd548_1512_ffcd_394e,
            0x1882_82c8_bd37_cb5c,
            0x8595_1e2c_aa9d_41bb,
            0xc8fc_6225_bf87_ff54,
            0x0088_48de_fe74_0a67,
        ]),
        fp([
            0xfd82_de55_559c_8ea6,
            0xc2fe_3d36_34a9_591a,
            0x6d18_2ad4_4fb8_2305,
            0xbd7f_b348_ca3e_52d9,
            0x1f67_4f5d_30af_eec4,
            0x0191_4a69_c510_2eff,
        ]),
    ];
    const G2: [Fp2<Fp>; 2] = [
        Fp2 {
            c0: fp([
                0x74e3_e48f_7c00_5196,
                0x7188_9f52_bb53_5402,
                0x7ea5_01f5_57db_6b9b,
                0xc565_f071_203e_5031,
                0xc896_30a2_a384_1d01,
                0x0184_80be_71c7_85fe,
            ]),
            c1: fp([
                0xb26b_fefa_6ea1_6afe,
                0x5cf8_9984_bff7_6fe6,
                0xe722_3ece_0799_c9de,
                0x5327_77ee_6651_cecb,
                0x70dc_5a51_b1b1_40d5,
                0x00ea_6040_e700_4031,
            ]),
        },
        Fp2 {
            c0: fp([
                0xf094_0944_09fd_4ddf,
                0xf2cf_8888_6d8c_7c2e,
                0xe458_c282_f832_d204,
                0xde03_ed72_74b4_9a58,
                0xd960_736b_cbb2_efb4,
                0x0069_0d66_5d44_6f7b,
            ]),
            c1: fp([
                0xd9a1_cdd1_85eb_8f93,
                0x4279_b83f_5e52_270b,
                0x2463_b01a_cee3_04c2,
                0x61ef_11ac_3d59_1bf1,
                0x9e54_9da3_151a_70aa,
                0x00f8_169f_d283_5518,
            ]),
        },
    ];
}
