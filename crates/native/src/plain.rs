//! Plain data between Python and JSON, both ways: None, truth, numbers, text, lists, and dictionaries by text.
//!
//! Python has a module for it that imports another for regular expressions, which takes longer than the start of all
//! that a load needs.

use std::fmt;

use pyo3::exceptions::{PyTypeError, PyValueError};
use pyo3::prelude::*;
use pyo3::types::{PyBool, PyDict, PyFloat, PyInt, PyList, PyString, PyTuple};
use serde::de::{DeserializeSeed, Deserializer, Error as _, MapAccess, SeqAccess, Visitor};
use serde::ser::{Error as _, Serialize, SerializeMap, SerializeSeq, Serializer};

/// Writes plain data as JSON. Raises TypeError for what is none.
pub fn write(plain: &Bound<'_, PyAny>) -> PyResult<String> {
    serde_json::to_string(&Plain(plain)).map_err(|error| PyTypeError::new_err(error.to_string()))
}

/// Reads JSON; dictionaries keep its order. Raises ValueError for what is none.
pub fn read<'py>(py: Python<'py>, text: &str) -> PyResult<Bound<'py, PyAny>> {
    let mut source = serde_json::Deserializer::from_str(text);
    let read = Made(py).deserialize(&mut source);
    read.and_then(|made| source.end().map(|()| made))
        .map_err(|error| PyValueError::new_err(error.to_string()))
}

/// A Python object to be written.
struct Plain<'a, 'py>(&'a Bound<'py, PyAny>);

impl Serialize for Plain<'_, '_> {
    fn serialize<S: Serializer>(&self, to: S) -> Result<S::Ok, S::Error> {
        let object = self.0;
        if object.is_none() {
            return to.serialize_none();
        }
        // Before the numbers: truth is one of them.
        if let Ok(truth) = object.cast::<PyBool>() {
            return to.serialize_bool(truth.is_true());
        }
        if object.is_instance_of::<PyInt>() {
            return match object.extract::<i64>() {
                Ok(number) => to.serialize_i64(number),
                Err(_) => to.serialize_u64(object.extract().map_err(S::Error::custom)?),
            };
        }
        if object.is_instance_of::<PyFloat>() {
            return to.serialize_f64(object.extract().map_err(S::Error::custom)?);
        }
        if let Ok(text) = object.cast::<PyString>() {
            return to.serialize_str(&text.to_cow().map_err(S::Error::custom)?);
        }
        if object.is_instance_of::<PyList>() || object.is_instance_of::<PyTuple>() {
            let mut list = to.serialize_seq(object.len().ok())?;
            for one in object.try_iter().map_err(S::Error::custom)? {
                list.serialize_element(&Plain(&one.map_err(S::Error::custom)?))?;
            }
            return list.end();
        }
        let Ok(fields) = object.cast::<PyDict>() else {
            let kind = object.get_type();
            return Err(S::Error::custom(format!("{kind} is no plain data")));
        };
        let mut map = to.serialize_map(Some(fields.len()))?;
        for (name, value) in fields {
            let name = name.cast::<PyString>().map_err(S::Error::custom)?;
            let name = name.to_cow().map_err(S::Error::custom)?;
            map.serialize_entry(name.as_ref(), &Plain(&value))?;
        }
        map.end()
    }
}

/// Makes Python objects of what is read.
#[derive(Clone, Copy)]
struct Made<'py>(Python<'py>);

impl<'de, 'py> DeserializeSeed<'de> for Made<'py> {
    type Value = Bound<'py, PyAny>;

    fn deserialize<D: Deserializer<'de>>(self, from: D) -> Result<Self::Value, D::Error> {
        from.deserialize_any(self)
    }
}

impl<'de, 'py> Visitor<'de> for Made<'py> {
    type Value = Bound<'py, PyAny>;

    fn expecting(&self, to: &mut fmt::Formatter<'_>) -> fmt::Result {
        to.write_str("JSON")
    }

    fn visit_unit<E>(self) -> Result<Self::Value, E> {
        Ok(self.0.None().into_bound(self.0))
    }

    fn visit_bool<E>(self, truth: bool) -> Result<Self::Value, E> {
        Ok(PyBool::new(self.0, truth).to_owned().into_any())
    }

    fn visit_i64<E: serde::de::Error>(self, number: i64) -> Result<Self::Value, E> {
        Ok(PyInt::new(self.0, number).into_any())
    }

    fn visit_u64<E: serde::de::Error>(self, number: u64) -> Result<Self::Value, E> {
        Ok(PyInt::new(self.0, number).into_any())
    }

    fn visit_f64<E>(self, number: f64) -> Result<Self::Value, E> {
        Ok(PyFloat::new(self.0, number).into_any())
    }

    fn visit_str<E>(self, text: &str) -> Result<Self::Value, E> {
        Ok(PyString::new(self.0, text).into_any())
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut from: A) -> Result<Self::Value, A::Error> {
        let list = PyList::empty(self.0);
        while let Some(one) = from.next_element_seed(self)? {
            list.append(one).map_err(A::Error::custom)?;
        }
        Ok(list.into_any())
    }

    fn visit_map<A: MapAccess<'de>>(self, mut from: A) -> Result<Self::Value, A::Error> {
        let fields = PyDict::new(self.0);
        while let Some(name) = from.next_key::<String>()? {
            let value = from.next_value_seed(self)?;
            fields.set_item(name, value).map_err(A::Error::custom)?;
        }
        Ok(fields.into_any())
    }
}
