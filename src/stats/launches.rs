//! Whether the launches of a cell differ from each other more than its queries do.

use super::location::mean;

/// Share of the variance that lies between launches, 0 to 1: the intraclass correlation of a one-way layout,
/// `(MSB - MSW) / (MSB + (k - 1) MSW)` with the usual mean group size for unequal groups; below 0 it is 0.
///
/// Near 0 the queries are as good as independent and a pooled interval is right. Towards 1 a cell has as many values as launches, however
/// many queries each answered. `None` under two launches, without a launch of two queries, or without any spread.
pub fn launch_effect(launches: &[Vec<f64>]) -> Option<f64> {
    let groups: Vec<&Vec<f64>> = launches.iter().filter(|group| !group.is_empty()).collect();
    let (count, total) = (groups.len() as f64, groups.iter().map(|group| group.len()).sum::<usize>() as f64);
    if groups.len() < 2 || total <= count {
        return None;
    }
    let grand = mean(&groups.iter().copied().flatten().copied().collect::<Vec<_>>())?;
    let (mut between, mut within, mut squares) = (0.0, 0.0, 0.0);
    for group in &groups {
        let (size, centre) = (group.len() as f64, mean(group)?);
        between += size * (centre - grand).powi(2);
        within += group.iter().map(|value| (value - centre).powi(2)).sum::<f64>();
        squares += size * size;
    }
    let (between, within) = (between / (count - 1.0), within / (total - count));
    let size = (total - squares / total) / (count - 1.0);
    let effect = (between - within) / (between + (size - 1.0) * within);
    effect.is_finite().then(|| effect.clamp(0.0, 1.0))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::stats::reference::close;

    #[test]
    fn agrees_with_a_hand_worked_layout() {
        // Shrout and Fleiss (1979), table 2, transposed to targets: ICC(1,1) = 0.17.
        let targets = [
            [9.0, 2.0, 5.0, 8.0],
            [6.0, 1.0, 3.0, 2.0],
            [8.0, 4.0, 6.0, 8.0],
            [7.0, 1.0, 2.0, 6.0],
            [10.0, 5.0, 6.0, 9.0],
            [6.0, 2.0, 4.0, 7.0],
        ];
        let found = launch_effect(&targets.map(|row| row.to_vec())).expect("a value");
        assert!((found - 0.166).abs() < 0.001, "{found}");
    }

    #[test]
    fn all_between_or_all_within() {
        close(launch_effect(&[vec![1.0, 1.0], vec![5.0, 5.0]]), 1.0);
        close(launch_effect(&[vec![1.0, 5.0], vec![1.0, 5.0]]), 0.0);
    }

    #[test]
    fn too_little_to_say() {
        assert_eq!(launch_effect(&[]), None);
        assert_eq!(launch_effect(&[vec![1.0, 2.0]]), None);
        assert_eq!(launch_effect(&[vec![1.0], vec![2.0]]), None);
        assert_eq!(launch_effect(&[vec![1.0, 1.0], vec![1.0, 1.0]]), None);
        assert_eq!(launch_effect(&[vec![1.0, f64::NAN], vec![1.0, 1.0]]), None);
    }
}
