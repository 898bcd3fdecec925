// Splits the source of a function into tokens. This is no parser: whether a `/` starts a regular expression, and whether a `{` opens a block or an object, is decided by the
// tokens before it. Where only a parser could tell, the usual case is assumed.

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

/** An open bracket. */
interface Bracket {
  readonly encloses: Enclosure
  /** The name or keyword before it, such as the `if` of `if (`; '' if there is none. */
  readonly keyword: string
  /** How many `?` inside it have not met their `:` yet. */
  openConditions: number
}

const SPACE = /(?:\s|\/\/.*|\/\*[^]*?\*\/)+/y
const NAME = /#?(?!\d)(?:[\p{ID_Continue}$\u200C\u200D]|\\u(?:\w{4}|\{\w+\}))+/uy
const NUMBER = /(?:0[xob][\da-f_]+|(?:\d[\d_]*(?:\.[\d_]*)?|\.\d[\d_]*)(?:e[+-]?[\d_]+)?)n?/iy
const STRING = /(["'])(?:(?!\1)[^\\\n\r]|\\(?:\r\n|[^]))*\1/y
const REGEX = /\/(?:[^/\\[\n\r]|\\.|\[(?:[^\]\\\n\r]|\\.)*\])+\/\w*/y
const TEMPLATE = /[^`\\$]*(?:(?:\\[^]|\$(?!\{))[^`\\$]*)*(?:`|\$\{)/y
const PUNCTUATOR = /\.{3}|=>|\?\.(?!\d)|\+\+|--|[!=]==?|(?:>>>|>>|<<|\*\*|&&|\|\||\?\?|[-+*/%&|^<>])=?|[{}()[\];,=~!?:.@]/y

/** Keywords after which an operand follows. */
const BEFORE_OPERAND: ReadonlySet<string> = new Set([
  'return',
  'typeof',
  'instanceof',
  'in',
  'of',
  'new',
  'delete',
  'void',
  'throw',
  'case',
  'do',
  'else',
  'yield',
  'await',
  'extends',
  'default',
  'let',
  'const',
  'var',
])
/** What comes before a `{` that opens a block. */
const BEFORE_BLOCK: ReadonlySet<string> = new Set(['=>', ';', '{', '}', ')', 'else', 'do'])
/** Keywords with a condition or head in parentheses, after which a statement follows. */
const WITH_HEAD: ReadonlySet<string> = new Set(['if', 'while', 'for', 'with'])

/** The tokens of a source, lazily. Ends early where the source is not JavaScript. */
export function* tokenize(source: string): Generator<Token> {
  const tokenizer = new Tokenizer(source)
  for (let token = tokenizer.next(); token !== null; token = tokenizer.next()) yield token
}

/** Reads tokens one after the other. What a `/` or a `{` means depends on the tokens and brackets before it, which are kept here. */
class Tokenizer {
  readonly #source: string
  #position = 0
  #last: Token | null = null
  #beforeLast: Token | null = null
  /** The innermost open bracket, and those around it. */
  #bracket = openBracket('block')
  readonly #outerBrackets: Bracket[] = []
  #lastClosed: Bracket = this.#bracket
  /** Whether the text of a template continues at the position, because a `}` has just closed its `${`. */
  #continuesTemplate = false
  /** Whether the last `:` belongs to a `?`. */
  #colonEndsCondition = false

  constructor(source: string) {
    this.#source = source
  }

  /** The next token; null at the end, and where the source is not JavaScript. */
  next(): Token | null {
    const token = this.#read()
    this.#beforeLast = this.#last
    this.#last = token
    return token
  }

  #read(): Token | null {
    if (this.#continuesTemplate) {
      this.#continuesTemplate = false
      return this.#template('')
    }
    if (this.#last?.type === 'template' && this.#source.startsWith('${', this.#position)) {
      this.#position += 2
      return this.#opening('${', 'template')
    }
    this.#match(SPACE)
    const character = this.#source.charAt(this.#position)
    if (character === '`') {
      this.#position++
      return this.#template(character)
    }
    if (character === '"' || character === "'") return newToken('string', this.#match(STRING))
    const name = this.#match(NAME)
    if (name !== null) return newToken(character === '#' ? 'private' : 'name', name.includes('\\') ? decodeEscapes(name) : name)
    if (/^\.?\d/.test(this.#source.slice(this.#position, this.#position + 2))) return newToken('number', this.#match(NUMBER))
    const regex = character === '/' && this.#expectsOperand() ? this.#match(REGEX) : null
    return newToken('regex', regex) ?? this.#punctuator(this.#match(PUNCTUATOR))
  }

  /** The text at the position that a sticky pattern matches, which is passed over; null if it does not match. */
  #match(pattern: RegExp): string | null {
    pattern.lastIndex = this.#position
    const text = pattern.exec(this.#source)?.[0] ?? null
    if (text !== null) this.#position += text.length
    return text
  }

  /** The text of a template up to its end or to a `${`, which is the next token. */
  #template(start: string): Token | null {
    const text = this.#match(TEMPLATE)
    if (text === null) return null
    if (!text.endsWith('${')) return newToken('template', start + text)
    this.#position -= 2
    return newToken('template', start + text.slice(0, -2))
  }

  #punctuator(text: string | null): Token | null {
    switch (text) {
      case '{':
        return this.#opening(text, this.#enclosureOfBrace())
      case '(':
      case '[':
        return this.#opening(text, 'group')
      case '?':
        this.#bracket.openConditions++
        break
      case ':':
        this.#colonEndsCondition = this.#bracket.openConditions > 0
        if (this.#colonEndsCondition) this.#bracket.openConditions--
        break
      case '}':
      case ')':
      case ']':
        this.#close()
        break
      default:
    }
    return newToken('punctuator', text)
  }

  #opening(text: string, encloses: Enclosure): Token {
    const keyword = this.#last?.type === 'name' && !isMember(this.#beforeLast) ? this.#last.text : ''
    this.#outerBrackets.push(this.#bracket)
    this.#bracket = openBracket(encloses, keyword)
    return { type: 'punctuator', text, opens: encloses }
  }

  #close(): void {
    this.#lastClosed = this.#bracket
    this.#continuesTemplate = this.#bracket.encloses === 'template'
    this.#bracket = this.#outerBrackets.pop() ?? openBracket('block')
  }

  /** Whether the next token starts an operand, so that a `/` starts a regular expression and a `{` an object. */
  #expectsOperand(): boolean {
    const last = this.#last
    if (last === null) return true
    if (last.type === 'name') {
      // `of` is a keyword in the head of a loop only.
      if (last.text === 'of' && this.#bracket.keyword !== 'for') return false
      return BEFORE_OPERAND.has(last.text) && !isMember(this.#beforeLast)
    }
    if (last.type !== 'punctuator') return false
    if (last.text === ')') return WITH_HEAD.has(this.#lastClosed.keyword)
    if (last.text === '}') return this.#lastClosed.encloses === 'block'
    return last.text !== ']' && last.text !== '++' && last.text !== '--'
  }

  /** What a `{` encloses that is the next token. */
  #enclosureOfBrace(): Enclosure {
    const last = this.#last
    if (last === null || BEFORE_BLOCK.has(last.text)) return 'block'
    if (last.text === ':') return this.#colonEndsCondition || this.#bracket.encloses === 'object' ? 'object' : 'block'
    return this.#expectsOperand() ? 'object' : 'block'
  }
}

const newToken = (type: Token['type'], text: string | null): Token | null => (text === null ? null : { type, text, opens: null })

const openBracket = (encloses: Enclosure, keyword = ''): Bracket => ({ encloses, keyword, openConditions: 0 })

/** Whether a token is a closing bracket. */
export const isClosing = ({ type, text }: Token): boolean => type === 'punctuator' && (text === ')' || text === ']' || text === '}')

/** Whether a token is the `.` or `?.` before the name of a member. */
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
