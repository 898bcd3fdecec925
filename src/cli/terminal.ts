// What the terminal takes: its width, and whether it shows colors. Tables and the lines of help fit into it; files and pipes get everything, without colors.

/** Where the text of a command is read. */
export interface Terminal {
  /** Characters in a line; null if lines may be of any length. */
  readonly columns: number | null
  readonly isColored: boolean
}

/** A file or a pipe. */
export const PLAIN: Terminal = { columns: null, isColored: false }

/**
 * The terminal at a stream. NO_COLOR (https://no-color.org) and TERM=dumb switch colors off. FORCE_COLOR (https://force-color.org) switches them on everywhere, also in files; as in Node,
 * FORCE_COLOR=0 switches them off.
 */
export function terminalOf(
  { isTTY = false, columns }: { readonly isTTY?: boolean; readonly columns?: number },
  { NO_COLOR = '', FORCE_COLOR = '', TERM = '' }: Readonly<Record<string, string | undefined>>,
): Terminal {
  const isColored = FORCE_COLOR === '' ? isTTY && NO_COLOR === '' && TERM !== 'dumb' : !['0', 'false'].includes(FORCE_COLOR)
  return { columns: isTTY ? (columns ?? null) : null, isColored }
}

const COLORS = { red: 31, green: 32, yellow: 33 } as const

/** Text in a color, where the terminal shows colors. */
export const paint = ({ isColored }: Terminal, color: keyof typeof COLORS, text: string): string =>
  isColored ? `\u001B[${COLORS[color]}m${text}\u001B[39m` : text

/** No column of a table becomes narrower than this. */
const NARROWEST = 8
const GAP = 2

/** The widths of columns that fit into the terminal: the widest ones give way. */
function fitted(widths: readonly number[], columns: number | null): readonly number[] {
  if (columns === null) return widths
  const room = columns - GAP * (widths.length - 1)
  const total = (most: number): number => widths.reduce((sum, width) => sum + Math.min(width, most), 0)
  let most = Math.max(0, ...widths)
  while (most > NARROWEST && total(most) > room) most--
  return widths.map((width) => Math.min(width, most))
}

const cut = (text: string, width: number): string => (text.length <= width ? text : `${text.slice(0, Math.max(0, width - 1))}…`)

/** Rows of text under each other in columns; cells that are too long for the terminal end in '…'. */
export function aligned(rows: readonly (readonly string[])[], { columns }: Terminal = PLAIN): readonly string[] {
  const count = Math.max(0, ...rows.map((row) => row.length))
  const natural = Array.from({ length: count }, (_, column) => Math.max(0, ...rows.map((row) => row[column]?.length ?? 0)))
  const widths = fitted(natural, columns)
  return rows.map((row) =>
    row
      .map((cell, column) => cut(cell, widths[column] ?? 0).padEnd(widths[column] ?? 0))
      .join(' '.repeat(GAP))
      .trimEnd(),
  )
}

/** Lines of at most this many characters, broken between words; a longer word has a line of its own. */
export function wrapped(text: string, width: number): readonly string[] {
  const lines: string[] = []
  let line = ''
  for (const word of text.split(' ')) {
    if (line !== '' && line.length + 1 + word.length > width) {
      lines.push(line)
      line = word
    } else {
      line = line === '' ? word : `${line} ${word}`
    }
  }
  return [...lines, line]
}
