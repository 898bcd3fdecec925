/** The least prime that is greater than `n`. */
export function primeAfter(n: number): number {
  for (let candidate = n + 1; ; candidate++) {
    let divisor = 2
    while (divisor * divisor <= candidate && candidate % divisor !== 0) divisor++
    if (divisor * divisor > candidate) return candidate
  }
}
