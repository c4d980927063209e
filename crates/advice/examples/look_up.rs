//! Looks sizes up, as THRESHOLDS.md shows.

use crossover_advice::{Advice, Question};

fn main() -> Result<(), crossover_advice::Error> {
    let advice = Advice::of_this_machine()?;
    let words: Vec<String> = std::env::args().skip(1).collect();
    for size in words[1..]
        .iter()
        .filter_map(|word| word.parse::<u64>().ok())
    {
        let answer = advice.decide(&Question::new(&words[0], size));
        println!("{}", format!("{:?}", answer.choice).to_lowercase());
    }
    Ok(())
}
