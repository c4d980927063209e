//! The wider arithmetic against numbers of more digits.

use std::f64::consts::{FRAC_PI_2, PI};

use crossover_arithmetic::{DoubleDouble, Wide};

/// What float64 cannot hold: 0.1², and its sum with -0.01.
#[test]
fn a_product_keeps_what_float64_rounds_off() {
    let square = DoubleDouble::from(0.0).plus_product(0.1, 0.1f64.into());
    let rest = square.minus(DoubleDouble::from(0.1 * 0.1));
    assert_eq!(rest, 0.1f64.mul_add(0.1, -(0.1 * 0.1)));
    assert!(rest != 0.0 && rest.abs() < 1e-18);
    let large = DoubleDouble::from(1e30).plus_product(1.0, 1f64.into());
    assert_eq!(large.minus(DoubleDouble::from(1e30)), 1.0);
    let third = DoubleDouble::from(1.0).over(3.0);
    assert_eq!(third.times(3f64.into()).minus(1f64.into()), 0.0);
}

/// Sines to 32 digits, as two float64, by mpmath; beside multiples of π almost all of x cancels.
#[test]
fn sines_are_right_far_beyond_float64() {
    for (x, high, low) in [
        (1.0, 0.8414709848078965, 1.776845092935536e-18),
        (0.5, 0.479425538604203, -5.103969860556013e-18),
        (-3.0, -0.1411200080598672, -8.577269787017502e-18),
        (PI, 1.2246467991473532e-16, -2.99476980971834e-33),
        (FRAC_PI_2, 1.0, -1.874699728327322e-33),
        (22.0, -0.008851309290403876, 2.8485303089220057e-19),
        (355.0, -3.014435335948845e-05, 1.3012643991046347e-21),
        (1e-05, 9.999999999833334e-06, 6.182336062862823e-22),
        (100000.0, 0.03574879797201651, 1.5429743706109861e-18),
        (103993.0, -1.9129335778423752e-05, 1.6616884502200222e-21),
        (1048576.0, 0.3304931400217347, -1.6543399442668335e-17),
    ] {
        let sine = DoubleDouble::from(x).sin();
        let error = sine.minus(DoubleDouble::new(high, low)) / high;
        assert!(error.abs() < 2f64.powi(-69), "{x}: {error:e}");
    }
    let pi = DoubleDouble::new(PI, 1.224_646_799_147_353_2e-16);
    assert!(pi.sin().value().abs() < 1e-32);
    assert!(DoubleDouble::from(f64::INFINITY).sin().value().is_nan());
}
