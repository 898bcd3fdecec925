// Colours of code: TypeScript and JavaScript as pieces with a class each. A lexer is enough for colours; where it cannot know whether a slash divides, it asks what stands before it.

/** A piece of code; the class is '' for plain text. */
export type Piece = readonly [kind: '' | 'comment' | 'string' | 'number' | 'keyword' | 'type', text: string]

const KEYWORDS = new Set(
  'abstract as async await break case catch class const continue declare default delete do else enum export extends false finally for from function get if implements import in infer instanceof interface is keyof let namespace new null of override private protected public readonly return satisfies set static super switch this throw true try type typeof undefined unique using var void while with yield'.split(
    ' ',
  ),
)
const TYPES = new Set('any bigint boolean never number object string symbol unknown'.split(' '))
const TOKEN =
  /\/\/[^\n]*|\/\*[^]*?(?:\*\/|$)|(["'])(?:\\[^]|(?!\1)[^\\\n])*\1?|`(?:\\[^]|[^\\`])*`?|\d(?:[\w.]|(?<=[eE])[-+])*|[\p{ID_Start}$_#@][\p{ID_Continue}$]*|\/(?![/*])(?:\\.|\[(?:\\.|[^\]\\\n])*\]|[^/\\[\n])+\/[a-z]*|[^]/gu

/** The pieces of a code in order; together they are the code. */
export function highlight(code: string): readonly Piece[] {
  const pieces: Piece[] = []
  let before = ''
  const push = (kind: Piece[0], text: string): void => {
    const last = pieces.at(-1)
    if (last !== undefined && last[0] === kind) pieces[pieces.length - 1] = [kind, last[1] + text]
    else pieces.push([kind, text])
  }
  TOKEN.lastIndex = 0
  for (let found = TOKEN.exec(code); found !== null; found = TOKEN.exec(code)) {
    const [token] = found
    const first = token[0] ?? ''
    const isComment = first === '/' && (token[1] === '/' || token[1] === '*')
    const isRegex = first === '/' && token.length > 1 && !isComment
    if (isRegex && /[\w$)\]}]$/.test(before) && !/^(?:return|typeof|case|in|of|yield|await)$/.test(before)) {
      // It divides.
      push('', '/')
      TOKEN.lastIndex = found.index + 1
      before = '/'
      continue
    }
    if (isComment) push('comment', token)
    else if (isRegex || first === '"' || first === "'" || first === '`') push('string', token)
    else if (first >= '0' && first <= '9') push('number', token)
    else if (KEYWORDS.has(token)) push('keyword', token)
    else push(TYPES.has(token) ? 'type' : '', token)
    if (!isComment && token.trim() !== '') before = token
  }
  return pieces
}

/** The pieces of each line. */
export function highlightedLines(code: string): readonly (readonly Piece[])[] {
  const lines: Piece[][] = [[]]
  for (const [kind, text] of highlight(code))
    text.split('\n').forEach((part, i) => {
      if (i > 0) lines.push([])
      if (part !== '') lines.at(-1)?.push([kind, part])
    })
  return lines
}
