// Errors as text: for messages, and to tell whether two failures are the same one.
import { TensorfxError } from '../../errors/index.ts'
import { valueText } from '../../protocol/index.ts'

/** The error, its cause, the cause of that and so on. An error that causes itself ends the chain, and so does the hundredth. */
function causes(error: unknown): readonly unknown[] {
  const chain = new Set<unknown>([error])
  for (let inner = error; inner instanceof Error && inner.cause !== undefined && chain.size < 100;) {
    inner = inner.cause
    if (chain.has(inner)) break
    chain.add(inner)
  }
  return [...chain]
}

/** `ClassName: message` of an error and of its causes. */
export function describe(error: unknown): string {
  return causes(error)
    .map((cause) => (cause instanceof Error ? `${cause.name}: ${cause.message}` : textOf(cause)))
    .join('\ncaused by ')
}

/** A thrown value as text; converting an object may throw itself. */
function textOf(value: unknown): string {
  try {
    return String(value)
  } catch {
    return valueText(value)
  }
}

/**
 * Two errors with the same signature count as the same bug: class and code of the innermost cause, and its first line with numbers, names, lists and quoted
 * parts masked. (PyTorch compares texts by similarity above 0.5, so that unrelated errors can mislead the search.)
 */
export function signatureOf(error: unknown): string {
  const inner = causes(error).findLast((cause) => cause instanceof Error)
  if (inner === undefined) return textOf(error)
  const line = (inner.message.split('\n')[0] ?? '')
    .replace(/'[^']*'|"[^"]*"|`[^`]*`/g, '_')
    .replace(/\[[^\]]*\]/g, '[]')
    .replace(/\w*\d\w*/g, '#')
  return `${inner.name}|${inner instanceof TensorfxError ? inner.code : ''}|${line}`
}
