// Colours of code: TypeScript and JavaScript as pieces with a class each. A lexer is enough for colours; where it cannot know whether a slash divides, it asks what stands before it.

/** A piece of code; the class is '' for plain text. */
export type Piece = readonly [kind: '' | 'comment' | 'string' | 'number' | 'keyword' | 'type', text: string]

const KEYWORDS = new Set(
  'abstract as async await break case catch class const continue declare default delete do else enum export extends false finally for from function get if implements import in infer instanceof interface is keyof let namespace new null of override private protected public readonly return satisfies set static super switch this throw true try type typeof undefined unique using var void while with yield'.split(
    ' ',
  ),
)
const TYPES = new Set('any bigint boolean never number object string symbol unknown'.split(' '))
/** Blanks and marks that begin nothing else are taken together. */
const TOKEN =
  /\s+|[-(){}[\];,.:<>=+*!?&|~^%]+|\/\/[^\n]*|\/\*[^]*?(?:\*\/|$)|(["'])(?:\\[^]|(?!\1)[^\\\n])*\1?|`(?:\\[^]|[^\\`])*`?|\d(?:[\w.]|(?<=[eE])[-+])*|[\p{ID_Start}$_#@][\p{ID_Continue}$]*|\/(?![/*])(?:\\.|\[(?:\\.|[^\]\\\n])*\]|[^/\\[\n])+\/[a-z]*|[^]/gu

/** The kind of a token that is no comment and no regular expression. */
function kindOf(token: string): Piece[0] {
  const first = token[0] ?? ''
  if (first === '"' || first === "'" || first === '`') return 'string'
  if (first >= '0' && first <= '9') return 'number'
  return KEYWORDS.has(token) ? 'keyword' : TYPES.has(token) ? 'type' : ''
}

/** The pieces of a code in order; together they are the code. */
export function highlight(code: string): readonly Piece[] {
  const pieces: Piece[] = []
  let before = ''
  let [kind, start]: [Piece[0], number] = ['', 0]
  TOKEN.lastIndex = 0
  for (let found = TOKEN.exec(code); found !== null; found = TOKEN.exec(code)) {
    let [token] = found
    const isComment = token.startsWith('//') || token.startsWith('/*')
    let isRegex = token.length > 1 && token.startsWith('/') && !isComment
    if (isRegex && /[\w$)\]}]$/.test(before) && !/^(?:return|typeof|case|in|of|yield|await)$/.test(before)) {
      // It divides.
      token = '/'
      isRegex = false
      TOKEN.lastIndex = found.index + 1
    }
    const now = isComment ? 'comment' : isRegex ? 'string' : kindOf(token)
    if (now !== kind) {
      if (found.index > start) pieces.push([kind, code.slice(start, found.index)])
      kind = now
      start = found.index
    }
    if (!isComment && token.trim() !== '') before = token
  }
  if (start < code.length) pieces.push([kind, code.slice(start)])
  return pieces
}

/** The pieces of each line. */
export function highlightedLines(code: string): readonly (readonly Piece[])[] {
  let line: Piece[] = []
  const lines = [line]
  for (const [kind, text] of highlight(code)) {
    let start = 0
    for (let end = text.indexOf('\n'); end >= 0; end = text.indexOf('\n', start)) {
      if (end > start) line.push([kind, text.slice(start, end)])
      line = []
      lines.push(line)
      start = end + 1
    }
    if (start < text.length) line.push([kind, text.slice(start)])
  }
  return lines
}
