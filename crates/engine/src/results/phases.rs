//! The phases of requests, as results tell them.

use serde::Serialize;

use super::Percentiles;
use crate::durations::Durations;
use crate::record::Record;

/// Histograms of the phases; None: not had.
pub struct Phases {
    connect: Option<Durations>,
    tls: Option<Durations>,
    first_byte: Option<Durations>,
    last_byte: Option<Durations>,
}

/// In whatever form they are told.
#[derive(Debug, Serialize)]
pub struct Told<T> {
    /// Until TCP stood, of every connection of the run.
    connect: Option<T>,
    /// From there until TLS stood.
    tls: Option<T>,
    /// From sent to the first byte of the answer, of measured requests.
    first_byte: Option<T>,
    /// From the first byte to the last.
    last_byte: Option<T>,
}

impl Phases {
    /// Those of a whole load.
    pub fn of(record: &Record) -> Phases {
        let pieces = record.pieces.as_deref();
        let none = crate::record::Pieces::default();
        let pieces = pieces.unwrap_or(&none);
        Phases {
            connect: had(record.standing.connect.clone()),
            tls: had(record.standing.tls.clone()),
            first_byte: had(Some(pieces.first_byte(&record.sent))),
            last_byte: had(Some(pieces.last_byte(&record.sent))),
        }
    }

    /// In another form.
    pub fn told<T>(&self, form: impl Fn(&Durations) -> T) -> Told<T> {
        let form = |durations: &Option<Durations>| durations.as_ref().map(&form);
        Told {
            connect: form(&self.connect),
            tls: form(&self.tls),
            first_byte: form(&self.first_byte),
            last_byte: form(&self.last_byte),
        }
    }

    /// As percentiles.
    pub fn percentiles(&self) -> Told<Percentiles> {
        self.told(Percentiles::of)
    }
}

fn had(durations: Option<Durations>) -> Option<Durations> {
    durations.filter(|durations| !durations.histogram.is_empty())
}
