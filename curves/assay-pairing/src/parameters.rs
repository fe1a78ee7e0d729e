//! Parameters of the curves. Those of Barreto, Lynn and Scott have `p = (x - 1)^2 (x^4 - x^2 + 1) / 3 + x` and
//! `r = x^4 - x^2 + 1`; those of Barreto and Naehrig have `p = 36 x^4 + 36 x^3 + 24 x^2 + 6 x + 1` and
//! `r = 36 x^4 + 36 x^3 + 18 x^2 + 6 x + 1`.

macro_rules! curve {
    (
        $(#[$about:meta])*
        $curve:ident, $limbs:literal, $prime:ident, $order:literal, $x:expr;
        $non_residue:literal, $xi:literal, $b:literal, $twist:ident
    ) => {
        $(#[$about])*
        pub mod $curve {
            use crate::field::{Fe, Modulus, primes};
            use crate::limbs::from_hex;
            use crate::tower::{TowerModulus, Twist};

            /// The absolute value of the parameter x.
            pub const X: u64 = $x;

            #[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
            pub struct Parameters;

            /// Modulus of the base field, p.
            #[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
            pub struct FpModulus;

            impl Modulus<$limbs> for FpModulus {
                const MODULUS: [u64; $limbs] = primes::$prime;
            }

            impl TowerModulus<$limbs> for FpModulus {
                const NON_RESIDUE: u64 = $non_residue;
                const XI: u64 = $xi;
                const B: u64 = $b;
                const TWIST: Twist = Twist::$twist;
            }

            /// Modulus of the scalar field, r.
            #[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
            pub struct FrModulus;

            impl Modulus<4> for FrModulus {
                const MODULUS: [u64; 4] = from_hex($order);
            }

            pub type Fp = Fe<FpModulus, $limbs>;
            pub type Fr = Fe<FrModulus, 4>;
        }
    };
}

curve! {
    /// BLS12-381: parameters. That of the family, x, is negative.
    bls12_381, 6, BLS12_381, "73eda753299d7d483339d80809a1d80553bda402fffe5bfeffffffff00000001", 0xd201_0000_0001_0000; 1, 1, 4, M
}

curve! {
    /// BLS12-377: parameters. As p is 1 modulo 4, the square of u cannot be -1.
    bls12_377, 6, BLS12_377, "12ab655e9a2ca55660b44d1e5c37b00159aa76fed00000010a11800000000001", 0x8508_c000_0000_0001; 5, 0, 1, D
}

curve! {
    /// BN254 (`alt_bn128` of the Ethereum virtual machine): parameters.
    bn254, 4, BN254, "30644e72e131a029b85045b68181585d2833e84879b9709143e1f593f0000001", 0x44e9_92b4_4a69_09f1; 1, 9, 3, D
}

curve! {
    /// The 254-bit curve of Barreto and Naehrig that Nogami, Akane, Sakemi, Kato and Morikawa (2008) proposed:
    /// parameters. The name is that of other libraries; it is also called BN254N and `BN_P254`. The parameter x is
    /// negative.
    bn254_nogami, 4, BN254_NOGAMI, "2523648240000001ba344d8000000007ff9f800000000010a10000000000000d", 1 << 62 | 1 << 55 | 1; 1, 1, 2, D
}
