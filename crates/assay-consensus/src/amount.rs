//! Amounts of money.

/// Satoshi in one coin.
pub const COIN: i64 = 100_000_000;

/// More than will ever exist; no amount and no sum may exceed it (Core `consensus/amount.h`).
pub const MAX_MONEY: i64 = 21_000_000 * COIN;

/// Returns `true` if `satoshi` is an amount that may appear: not negative and at most [`MAX_MONEY`].
#[inline]
pub const fn money_range(satoshi: i64) -> bool {
    satoshi >= 0 && satoshi <= MAX_MONEY
}

/// Writes an amount in coins as Core's messages do: at least two decimals, no further zeros.
#[must_use]
pub fn format_money(satoshi: i64) -> String {
    let sign = if satoshi < 0 { "-" } else { "" };
    let magnitude = satoshi.unsigned_abs();
    let coin = COIN.unsigned_abs();
    let mut text = format!("{sign}{}.{:08}", magnitude / coin, magnitude % coin);
    let shortest = text.len() - 6;
    while text.len() > shortest && text.ends_with('0') {
        text.pop();
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn money_is_written_as_core_writes_it() {
        for (satoshi, expected) in [
            (0, "0.00"),
            (COIN, "1.00"),
            (COIN / 10, "0.10"),
            (1, "0.00000001"),
            (123_456_789, "1.23456789"),
            (-COIN, "-1.00"),
            (10 * COIN + 500, "10.000005"),
            (MAX_MONEY, "21000000.00"),
        ] {
            assert_eq!(format_money(satoshi), expected);
        }
        assert_eq!(format_money(i64::MIN), "-92233720368.54775808");
    }
}
