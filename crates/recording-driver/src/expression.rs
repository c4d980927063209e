//! Integer constants of C++: conditions of the preprocessor and launch bounds.

use crate::preprocess::{Kind, Token};

/// A member of a template with its arguments, such as `<8, 4>::THREADS`.
pub(crate) type Member<'a> = (&'a [i64], &'a str);

/// The value of a name, or of the member of a template of that name; `None` where it has none.
pub(crate) type Names<'a> = dyn Fn(&str, Option<Member<'_>>) -> Option<i64> + 'a;

/// The value of the whole expression; `None` where it is malformed or has none.
pub(crate) fn value(tokens: &[Token], names: &Names<'_>) -> Option<i64> {
    let mut parser = Parser {
        tokens,
        at: 0,
        names,
    };
    let value = parser.choice()?;
    (parser.at == tokens.len()).then_some(value)
}

struct Parser<'a> {
    tokens: &'a [Token],
    at: usize,
    names: &'a Names<'a>,
}

/// Binary operators, those that bind least first.
const LEVELS: [&[&str]; 10] = [
    &["||"],
    &["&&"],
    &["|"],
    &["^"],
    &["&"],
    &["==", "!="],
    &["<", "<=", ">", ">="],
    &["<<", ">>"],
    &["+", "-"],
    &["*", "/", "%"],
];
/// The level of template arguments, in which `<` and `>` are no operators.
const ADDITIVE: usize = 8;

impl Parser<'_> {
    fn take(&mut self, text: &str) -> Option<()> {
        let next = self.tokens.get(self.at)?;
        next.is(text).then(|| self.at += 1)
    }

    fn choice(&mut self) -> Option<i64> {
        let condition = self.binary(0)?;
        if self.take("?").is_none() {
            return Some(condition);
        }
        let holds = self.choice()?;
        self.take(":")?;
        let fails = self.choice()?;
        Some(if condition != 0 { holds } else { fails })
    }

    fn binary(&mut self, level: usize) -> Option<i64> {
        let Some(operators) = LEVELS.get(level) else {
            return self.unary();
        };
        let mut left = self.binary(level + 1)?;
        while let Some(operator) = self.operator(operators) {
            let right = self.binary(level + 1)?;
            left = match operator {
                "||" => i64::from(left != 0 || right != 0),
                "&&" => i64::from(left != 0 && right != 0),
                "|" => left | right,
                "^" => left ^ right,
                "&" => left & right,
                "==" => i64::from(left == right),
                "!=" => i64::from(left != right),
                "<" => i64::from(left < right),
                "<=" => i64::from(left <= right),
                ">" => i64::from(left > right),
                ">=" => i64::from(left >= right),
                "<<" => left.checked_shl(u32::try_from(right).ok()?)?,
                ">>" => left.checked_shr(u32::try_from(right).ok()?)?,
                "+" => left.checked_add(right)?,
                "-" => left.checked_sub(right)?,
                "*" => left.checked_mul(right)?,
                "/" => left.checked_div(right)?,
                _ => left.checked_rem(right)?,
            };
        }
        Some(left)
    }

    fn operator(&mut self, operators: &[&'static str]) -> Option<&'static str> {
        // `>>` is two tokens.
        let two = |at| {
            self.tokens
                .get(at..at + 2)
                .is_some_and(|t| t.iter().all(|t| t.is(">")))
        };
        if two(self.at) {
            return operators.contains(&">>").then(|| {
                self.at += 2;
                ">>"
            });
        }
        operators
            .iter()
            .find(|operator| self.take(operator).is_some())
            .copied()
    }

    fn unary(&mut self) -> Option<i64> {
        for (sign, apply) in [
            ("-", (|v| -v) as fn(i64) -> i64),
            ("+", |v| v),
            ("~", |v| !v),
            ("!", |v| i64::from(v == 0)),
        ] {
            if self.take(sign).is_some() {
                return self.unary().map(apply);
            }
        }
        if self.take("(").is_some() {
            let value = self.choice()?;
            self.take(")")?;
            return Some(value);
        }
        let token = self.tokens.get(self.at)?;
        self.at += 1;
        match token.kind {
            Kind::Number => number(&token.text),
            Kind::Name if token.is("true") => Some(1),
            Kind::Name if token.is("false") => Some(0),
            Kind::Name => {
                let behind = self.at;
                if let Some((arguments, member)) = self.member() {
                    return (self.names)(&token.text, Some((&arguments, &member)));
                }
                self.at = behind;
                (self.names)(&token.text, None)
            }
            Kind::Literal | Kind::Sign => None,
        }
    }

    /// `<1, 2>::NAME`.
    fn member(&mut self) -> Option<(Vec<i64>, String)> {
        self.take("<")?;
        let mut arguments = vec![self.binary(ADDITIVE)?];
        while self.take(",").is_some() {
            arguments.push(self.binary(ADDITIVE)?);
        }
        self.take(">")?;
        self.take("::")?;
        let member = self.tokens.get(self.at)?.text.clone();
        self.at += 1;
        Some((arguments, member))
    }
}

fn number(text: &str) -> Option<i64> {
    let digits = text.trim_end_matches(['u', 'U', 'l', 'L']);
    match digits
        .strip_prefix("0x")
        .or_else(|| digits.strip_prefix("0X"))
    {
        Some(hexadecimal) => i64::from_str_radix(hexadecimal, 16).ok(),
        None => digits.parse().ok(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::preprocess::tokens;

    fn of(text: &str) -> Option<i64> {
        let names = |name: &str, member: Option<Member<'_>>| match (name, member) {
            ("N", None) => Some(7),
            ("T", Some((arguments, "SUM"))) => Some(arguments.iter().sum()),
            _ => None,
        };
        value(&tokens(text, &[]).unwrap(), &names)
    }

    #[test]
    fn operators_bind_as_in_c() {
        assert_eq!(of("1 + 2 * 3 - 8 / 4 % 3"), Some(5));
        assert_eq!(of("1 << 4 >> 2 | 1"), Some(5));
        assert_eq!(of("N > 6 && !(N == 8) || 0"), Some(1));
        assert_eq!(of("N <= 6 ? 1 : -0x10u"), Some(-16));
        assert_eq!(of("~0 & 255 ^ 1"), Some(254));
        assert_eq!(of("true != false"), Some(1));
    }

    #[test]
    fn members_of_templates_have_their_arguments() {
        assert_eq!(of("2 * T<N, 1 + 2>::SUM"), Some(20));
        assert_eq!(of("N < 8"), Some(1), "less, and no list of arguments");
    }

    #[test]
    fn what_is_malformed_or_unknown_has_no_value() {
        for text in [
            "",
            "1 +",
            "(1",
            "1 2",
            "M",
            "1 / 0",
            "1 << 64",
            "T<1>::OTHER",
            "1.5",
            "'a'",
        ] {
            assert_eq!(of(text), None, "{text}");
        }
    }
}
