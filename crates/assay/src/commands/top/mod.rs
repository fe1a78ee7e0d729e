//! `assay top`.

mod client;
mod snapshot;
mod view;

use std::io::IsTerminal;
use std::thread;
use std::time::Duration;

use indicatif::{ProgressBar, ProgressDrawTarget, ProgressStyle};

use self::snapshot::Snapshot;
use crate::Outcome;
use crate::cli::TopArguments;
use crate::output;

pub(crate) fn run(arguments: &TopArguments) -> anyhow::Result<Outcome> {
    let client = client::find(arguments)?;
    let first = Snapshot::take(&client)?;
    if arguments.json {
        output::print_json(&first)?;
        return Ok(Outcome::Good);
    }
    let interval = Duration::from_secs_f64(arguments.interval);
    let screen = std::io::stdout().is_terminal().then(screen);
    let mut before = None;
    let mut now = first;
    let mut looks = 0;
    loop {
        match &screen {
            Some(screen) => screen.set_message(view::page(&now, before.as_ref())),
            None => output::print(&view::line(&now, before.as_ref()))?,
        }
        looks += 1;
        if arguments.count.is_some_and(|count| looks >= count) {
            break;
        }
        thread::sleep(interval);
        before = Some(now);
        now = Snapshot::take(&client)?;
    }
    if let Some(screen) = &screen {
        // Keeps the last page on the terminal.
        screen.abandon();
    }
    Ok(Outcome::Good)
}

/// Lines on the terminal, redrawn in place.
fn screen() -> ProgressBar {
    let bar = ProgressBar::with_draw_target(None, ProgressDrawTarget::stdout_with_hz(20));
    if let Ok(style) = ProgressStyle::with_template("{msg}") {
        bar.set_style(style);
    }
    bar
}
