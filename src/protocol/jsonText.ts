// JSON from outside, as text. It is measured before it is parsed: how deep it is nested, how many parts it has, and whether an object has a key twice, of which
// JSON.parse would keep the last.
import { ArgumentError, messageOf } from '../errors/index.ts'
import { MAX_DEPTH } from './decode.ts'

/** Parts that every text may have, and how many characters each further part must have on average. A part takes up to 60 bytes of memory. */
const FREE_PARTS = 400_000
const CHARACTERS_PER_CONTAINER = 16
const CHARACTERS_PER_KEY = 8

/** Parses JSON. `where` is the function that got the text, `what` says what the text is. Throws ArgumentError for text that is not JSON, or that breaks a limit. */
export function parseJson(where: string, what: string, text: string): unknown {
  measure(where, what, text)
  try {
    const value: unknown = JSON.parse(text)
    return value
  } catch (cause) {
    throw new ArgumentError(`${where}: ${what} is not JSON: ${messageOf(cause)}.`, { cause })
  }
}

/** The keys of an object so far: an array while there are few. */
type Keys = { few: string[]; many: Set<string> | null }

const FEW = 8

/** Adds a key. Returns whether it is new. */
function isNew(keys: Keys, key: string): boolean {
  if (keys.many !== null) return keys.many.size < keys.many.add(key).size
  if (keys.few.includes(key)) return false
  if (keys.few.push(key) > FEW) keys.many = new Set(keys.few)
  return true
}

const QUOTE = 34
const BACKSLASH = 92
const COLON = 58
const BRACKET = 91
const BRACKET_END = 93
const BRACE = 123
const BRACE_END = 125

/** Throws ArgumentError if a text breaks a limit. A text that is not JSON may pass. */
function measure(where: string, what: string, text: string): void {
  const open: (Keys | null)[] = []
  let [containers, keyCount] = [0, 0]
  const maxContainers = FREE_PARTS + text.length / CHARACTERS_PER_CONTAINER
  const maxKeys = FREE_PARTS + text.length / CHARACTERS_PER_KEY
  for (let i = 0; i < text.length; i++) {
    const code = text.charCodeAt(i)
    if (code === BRACE || code === BRACKET) {
      open.push(code === BRACE ? { few: [], many: null } : null)
      if (open.length > MAX_DEPTH) throw new ArgumentError(`${where}: ${what} is nested more than ${MAX_DEPTH} deep.`)
      if (++containers > maxContainers)
        throw new ArgumentError(`${where}: ${what} has too many arrays and objects for its ${text.length} characters.`)
    } else if (code === BRACE_END || code === BRACKET_END) open.pop()
    else if (code === QUOTE) {
      const end = endOfString(text, i)
      const keys = open.at(-1)
      if (keys !== null && keys !== undefined && text.charCodeAt(afterSpace(text, end)) === COLON) {
        if (++keyCount > maxKeys) throw new ArgumentError(`${where}: ${what} has too many keys for its ${text.length} characters.`)
        const key = keyText(text.slice(i, end))
        if (!isNew(keys, key)) throw new ArgumentError(`${where}: ${what} has the key '${key.slice(0, 100)}' twice in one object.`)
      }
      i = end - 1
    }
  }
}

/** The position after a string that starts at `from`. */
function endOfString(text: string, from: number): number {
  let i = from + 1
  for (; i < text.length; i++) {
    const code = text.charCodeAt(i)
    if (code === BACKSLASH) i++
    else if (code === QUOTE) return i + 1
  }
  return Math.min(i, text.length)
}

function afterSpace(text: string, from: number): number {
  let i = from
  while (i < text.length && text.charCodeAt(i) <= 32) i++
  return i
}

/** The key that a quoted text stands for. */
function keyText(quoted: string): string {
  if (!quoted.includes('\\')) return quoted.slice(1, -1)
  try {
    return String(JSON.parse(quoted))
  } catch {
    // JSON.parse of the whole text will say what is wrong.
    return quoted
  }
}
