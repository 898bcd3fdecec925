// Numbers as the page writes them.

/** `1.5 MB`. */
export function byteText(bytes: number): string {
  const units = ['B', 'KB', 'MB', 'GB', 'TB']
  let [value, unit] = [bytes, 0]
  while (value >= 1000 && unit < units.length - 1) [value, unit] = [value / 1000, unit + 1]
  return `${Number(value.toPrecision(3))} ${units[unit] ?? ''}`
}

/** `1:05:09` or `5:09`. */
export function clockText(seconds: number): string {
  const whole = Math.max(0, Math.round(seconds))
  const [hours, minutes, rest] = [Math.floor(whole / 3600), Math.floor(whole / 60) % 60, whole % 60]
  const two = (n: number): string => String(n).padStart(2, '0')
  return hours > 0 ? `${hours}:${two(minutes)}:${two(rest)}` : `${minutes}:${two(rest)}`
}

/** Round values between two, as many as `count`. */
export function ticks(from: number, to: number, count: number): readonly number[] {
  const span = to - from
  if (!(span > 0)) return [from]
  const rough = span / count
  const power = 10 ** Math.floor(Math.log10(rough))
  const step = power * ([1, 2, 5, 10].find((factor) => factor * power >= rough) ?? 10)
  const found: number[] = []
  for (let i = Math.ceil(from / step); i * step <= to + step * 1e-9; i++) found.push(i * step)
  return found
}
