//! Prints the JSON schema of the file of thresholds.

fn main() {
    let schema = schemars::schema_for!(crossover_advice::Thresholds);
    println!("{:#}", schema.as_value());
}
