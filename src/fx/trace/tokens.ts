// Splits the source of a function into tokens. It does not parse, so it has to decide by the tokens before a `/` whether that starts a regular expression, and by the
// tokens before a `{` whether that opens a block or an object. Where JavaScript would need a parser to tell, it takes the usual case.

/** What a bracket encloses. 'block' includes the bodies of functions and classes, 'template' is `${…}` in a template, and 'group' is `(…)` or `[…]`. */
export type Enclosure = 'block' | 'object' | 'template' | 'group'

/** A token. Comments and white space are left out. */
export interface Token {
  readonly type: 'name' | 'private' | 'number' | 'string' | 'template' | 'regex' | 'punctuator'
  /** The source of the token; for a name, without escapes. */
  readonly text: string
  /** For an opening bracket, what it encloses; null for other tokens. */
  readonly opens: Enclosure | null
}

/** A bracket that is open. */
interface Frame {
  readonly kind: Enclosure
  /** For `(`, the keyword before it: `if (`. */
  readonly keyword: string
  /** The number of `?` that wait for their `:`. */
  ternaries: number
}

const SPACE = /(?:\s|\/\/.*|\/\*[^]*?\*\/)+/y
const NAME = /#?(?!\d)(?:[\p{ID_Continue}$\u200C\u200D]|\\u(?:\w{4}|\{\w+\}))+/uy
const NUMBER = /(?:0[xob][\da-f_]+|(?:\d[\d_]*(?:\.[\d_]*)?|\.\d[\d_]*)(?:e[+-]?[\d_]+)?)n?/iy
const STRING = /(["'])(?:(?!\1)[^\\\n\r]|\\(?:\r\n|[^]))*\1/y
const REGEX = /\/(?:[^/\\[\n\r]|\\.|\[(?:[^\]\\\n\r]|\\.)*\])+\/\w*/y
const TEMPLATE = /[^`\\$]*(?:(?:\\[^]|\$(?!\{))[^`\\$]*)*(?:`|\$\{)/y
const PUNCTUATOR = /\.{3}|=>|\?\.(?!\d)|\+\+|--|[!=]==?|(?:>>>|>>|<<|\*\*|&&|\|\||\?\?|[-+*/%&|^<>])=?|[{}()[\];,=~!?:.@]/y

/** Keywords after which an operand follows. */
const BEFORE_OPERAND: ReadonlySet<string> = new Set(
  'return typeof instanceof in of new delete void throw case do else yield await extends default let const var'.split(' '),
)
/** What comes before a `{` that opens a block. */
const BEFORE_BLOCK: ReadonlySet<string> = new Set(['=>', ';', '{', '}', ')', 'else', 'do'])
/** Keywords with a condition or head in parentheses, after which a statement follows. */
const WITH_HEAD: ReadonlySet<string> = new Set(['if', 'while', 'for', 'with'])

/** The tokens of a source, lazily. Ends early where the source is not JavaScript. */
export function* tokenize(source: string): Generator<Token> {
  const frames: Frame[] = []
  let frame = newFrame('block')
  let at = 0
  let inTemplate = false
  /** Whether the last `:` belongs to a `?`. */
  let colonIsTernary = false
  /** The last token, the one before it, and the last bracket that was closed. */
  let last: Token | null = null
  let before: Token | null = null
  let closed = frame

  const match = (pattern: RegExp): string | null => {
    pattern.lastIndex = at
    const text = pattern.exec(source)?.[0] ?? null
    if (text !== null) at += text.length
    return text
  }
  const token = (type: Token['type'], text: string | null, opens: Enclosure | null = null): Token | null =>
    text === null ? null : { type, text, opens }

  /** Whether the next token starts an operand, so that a `/` starts a regular expression and a `{` an object. */
  const expectsOperand = (): boolean => {
    if (last === null) return true
    if (last.type === 'name') return BEFORE_OPERAND.has(last.text) && !isMember(before) && (last.text !== 'of' || frame.keyword === 'for')
    if (last.type !== 'punctuator') return false
    if (last.text === ')') return WITH_HEAD.has(closed.keyword)
    if (last.text === '}') return closed.kind === 'block'
    return last.text !== ']' && last.text !== '++' && last.text !== '--'
  }
  const braceKind = (): Enclosure => {
    if (last === null || BEFORE_BLOCK.has(last.text)) return 'block'
    if (last.text === ':') return colonIsTernary || frame.kind === 'object' ? 'object' : 'block'
    return expectsOperand() ? 'object' : 'block'
  }
  const open = (kind: Enclosure): Enclosure => {
    frames.push(frame)
    frame = newFrame(kind, last?.type === 'name' && !isMember(before) ? last.text : '')
    return kind
  }
  const punctuator = (text: string | null): Token | null => {
    if (text === '{') return token('punctuator', text, open(braceKind()))
    if (text === '(' || text === '[') return token('punctuator', text, open('group'))
    if (text === '?') frame.ternaries++
    else if (text === ':') {
      colonIsTernary = frame.ternaries > 0
      if (colonIsTernary) frame.ternaries--
    } else if (text === '}' || text === ')' || text === ']') {
      closed = frame
      inTemplate = frame.kind === 'template'
      frame = frames.pop() ?? newFrame('block')
    }
    return token('punctuator', text)
  }
  /** A part of a template, up to its end or up to a `${`, which the next call of `read` reads. */
  const template = (start: string): Token | null => {
    const text = match(TEMPLATE)
    if (text?.endsWith('${') !== true) return token('template', text === null ? null : start + text)
    at -= 2
    return token('template', start + text.slice(0, -2))
  }
  const read = (): Token | null => {
    if (inTemplate) {
      inTemplate = false
      return template('')
    }
    if (last?.type === 'template' && source.startsWith('${', at)) {
      at += 2
      return token('punctuator', '${', open('template'))
    }
    match(SPACE)
    const character = source.charAt(at)
    if (character === '`') {
      at++
      return template(character)
    }
    if (character === '"' || character === "'") return token('string', match(STRING))
    const name = match(NAME)
    if (name !== null) return token(character === '#' ? 'private' : 'name', name.includes('\\') ? decodeEscapes(name) : name)
    if (/^\.?\d/.test(source.slice(at, at + 2))) return token('number', match(NUMBER))
    return (character === '/' && expectsOperand() ? token('regex', match(REGEX)) : null) ?? punctuator(match(PUNCTUATOR))
  }

  for (let next = read(); next !== null; next = read()) {
    yield next
    before = last
    last = next
  }
}

const newFrame = (kind: Enclosure, keyword = ''): Frame => ({ kind, keyword, ternaries: 0 })

/** Whether a token closes what a token with `opens` opened. */
export const isClosing = ({ type, text }: Token): boolean => type === 'punctuator' && (text === ')' || text === ']' || text === '}')

/** Whether a token makes the next one the name of a member. */
export const isMember = (token: Token | null | undefined): boolean => token?.text === '.' || token?.text === '?.'

const SINGLE: Readonly<Record<string, string>> = { n: '\n', r: '\r', t: '\t', b: '\b', v: '\v', f: '\f' }

/** A text with its escape sequences replaced by what they stand for. */
export function decodeEscapes(text: string): string {
  return text.replace(
    /\\(?:u\{(\w+)\}|u(\w{4})|x(\w\w)|([0-3][0-7]{0,2}|[4-7][0-7]?)|\r\n|([^]))/g,
    (_, point?: string, unit?: string, byte?: string, octal?: string, character = '') => {
      const hex = point ?? unit ?? byte
      if (hex !== undefined) return String.fromCodePoint(Number.parseInt(hex, 16))
      if (octal !== undefined) return String.fromCharCode(Number.parseInt(octal, 8))
      // A line break after a backslash continues the line.
      return SINGLE[character] ?? (/[\n\r\u2028\u2029]/.test(character) ? '' : character)
    },
  )
}
