//! revm's precompiles of the Ethereum virtual machine, by address, as of Osaka.

use anyhow::{Context as _, Result, ensure};
use revm_precompile::{Precompile, Precompiles, u64_to_address};

use crate::assay::{PRECOMPILES, precompile_input};
use crate::evm_inputs::{recoveries, recovery_inputs};
use crate::table::{Prepared, Table};

pub const VERSION: &str = "43.0.3";

const GROUP: &str = "evm";

/// More gas than any input here costs.
const GAS: u64 = 1 << 60;

pub fn table() -> Table {
    let mut table = Table::default();
    ecrecover(&mut table);
    ecrecover_many(&mut table);
    for (address, name, _) in PRECOMPILES.into_iter().filter(|(address, ..)| *address != 1) {
        let how = format!("Precompiles::osaka, address {address:#04x}");
        table.add(GROUP, name, how, move |work| {
            let (run, input) = (at(address)?, precompile_input(name, work)?);
            let answer = call(run, &input)?;
            Ok(Prepared::repeated(answer, move || call(run, &input).expect("it worked before")))
        });
    }
    table
}

/// revm's precompile at an address.
///
/// # Errors
/// If there is none.
pub fn at(address: u64) -> Result<&'static Precompile> {
    Precompiles::osaka().get(&u64_to_address(address)).context("no such precompile")
}

/// Output and gas; `None` if the precompile fails.
pub fn verdict(precompile: &Precompile, input: &[u8]) -> Option<(Vec<u8>, u64)> {
    let output = precompile.execute(input, GAS, 0).ok()?;
    if !output.is_success() {
        return None;
    }
    Some((output.bytes.to_vec(), output.gas_used))
}

fn call(precompile: &Precompile, input: &[u8]) -> Result<Vec<u8>> {
    let output = precompile.execute(input, GAS, 0).map_err(|error| anyhow::anyhow!("{error:?}"))?;
    ensure!(output.is_success(), "{:?}", output.status);
    Ok(output.bytes.to_vec())
}

/// The signature is part of the order: message, r and s. `v` selects one of the two possible keys; the answer has both.
fn ecrecover(table: &mut Table) {
    table.add(GROUP, "ecrecover", "Precompiles::osaka, address 0x01", |work| {
        let (run, inputs) = (at(1)?, recovery_inputs(work)?);
        let answer = [call(run, &inputs[0])?, call(run, &inputs[1])?].concat();
        Ok(Prepared::repeated(answer, move || call(run, &inputs[1]).expect("it worked before")))
    });
}

fn ecrecover_many(table: &mut Table) {
    table.add(GROUP, "ecrecover-many", "Precompiles::osaka, address 0x01, one by one", |work| {
        let (run, inputs) = (at(1)?, recoveries(work)?);
        let all = move || -> Result<Vec<Vec<u8>>> {
            inputs.iter().map(|input| call(run, input)).collect()
        };
        Ok(Prepared::repeated(all()?.concat(), move || all().expect("it worked before")))
    });
}
