// Values as Python prints them, for texts that are the same here and in PyTorch: of modules, and of reports.

/** A Python float: 1.0, 1e-05, inf. */
export function pyFloat(value: number): string {
  if (Number.isNaN(value)) return 'nan'
  if (!Number.isFinite(value)) return value > 0 ? 'inf' : '-inf'
  const size = Math.abs(value)
  if (size !== 0 && (size < 1e-4 || size >= 1e16)) return value.toExponential().replace(/e([+-])(\d)$/, 'e$10$2')
  return Number.isInteger(value) ? `${value}.0` : String(value)
}

/** A Python int, tuple of ints, bool, None or quoted string. */
export function py(value: number | boolean | string | null | readonly (number | null)[]): string {
  if (value === null) return 'None'
  if (value === true) return 'True'
  if (value === false) return 'False'
  if (typeof value === 'number') return String(value)
  if (typeof value === 'string') return `'${value}'`
  return `(${value.map(py).join(', ')}${value.length === 1 ? ',' : ''})`
}
