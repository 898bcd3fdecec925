// Constants as Python writes them, so that a graph prints as it does in PyTorch: 1e-05, inf, and strings in the right quotes.

/** A number as Python prints it. A whole number prints as an int: JavaScript cannot tell 1.0 from 1. */
export function pyNumber(value: number): string {
  if (Number.isSafeInteger(value)) return Object.is(value, -0) ? '-0.0' : String(value)
  if (Number.isNaN(value)) return 'nan'
  if (!Number.isFinite(value)) return value > 0 ? 'inf' : '-inf'
  const [mantissa = '', exponentText = '0'] = value.toExponential().split('e')
  const exponent = Number(exponentText)
  if (exponent < -4 || exponent >= 16) return `${mantissa}e${exponent < 0 ? '-' : '+'}${String(Math.abs(exponent)).padStart(2, '0')}`
  return String(value)
}

const ESCAPES: Readonly<Record<string, string>> = { '\\': '\\\\', '\n': '\\n', '\r': '\\r', '\t': '\\t' }

/** A string as Python's repr writes it: single quotes, unless only double ones save an escape. */
export function pyString(text: string): string {
  const quote = text.includes("'") && !text.includes('"') ? '"' : "'"
  // oxlint-disable-next-line no-control-regex -- control characters are what is escaped here
  const body = text.replace(/[\\\n\r\t]|[\u0000-\u001f\u007f]/g, (c) => ESCAPES[c] ?? `\\x${c.charCodeAt(0).toString(16).padStart(2, '0')}`)
  return `${quote}${quote === "'" ? body.replaceAll("'", "\\'") : body}${quote}`
}
