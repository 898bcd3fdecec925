// The part of the page's address that says what is seen: `#node=relu_3&view=120,4800,0.85&open=0.2`.

/** What is seen. */
export interface ViewState {
  /** The name of the selected node. */
  readonly node: string | null
  /** The point of the scene in the middle of the screen, and the scale. */
  readonly view: readonly [x: number, y: number, scale: number] | null
  /** The open groups, by their place among all groups; null for those that are open at first. */
  readonly open: readonly number[] | null
}

export function toHash({ node, view, open }: ViewState): string {
  const parts = [
    ...(node === null ? [] : [`node=${encodeURIComponent(node)}`]),
    ...(view === null ? [] : [`view=${Math.round(view[0])},${Math.round(view[1])},${view[2].toPrecision(3)}`]),
    ...(open === null ? [] : [`open=${ranges(open)}`]),
  ]
  return parts.length === 0 ? '' : `#${parts.join('&')}`
}

/** Reads an address. What it does not say, or says in another form, is null. */
export function fromHash(hash: string): ViewState {
  const params = new URLSearchParams(hash.replace(/^#/, ''))
  const numbers = (params.get('view') ?? '').split(',').map(Number)
  const [x = NaN, y = NaN, scale = NaN] = numbers
  const open = params.get('open')
  return {
    node: params.get('node'),
    view: [x, y, scale].every(Number.isFinite) && scale > 0 ? [x, y, scale] : null,
    open: open === null ? null : fromRanges(open),
  }
}

/** `0-3.7` for 0, 1, 2, 3 and 7, in order. */
function ranges(numbers: readonly number[]): string {
  const found: [number, number][] = []
  for (const n of [...numbers].sort((a, b) => a - b)) {
    const last = found.at(-1)
    if (last !== undefined && last[1] === n - 1) last[1] = n
    else found.push([n, n])
  }
  return found.map(([a, b]) => (a === b ? String(a) : `${a}-${b}`)).join('.')
}

/** There are not more groups than this; an address is not to be believed. */
const MOST_GROUPS = 1_000_000

function fromRanges(text: string): number[] {
  return text.split('.').flatMap((part) => {
    const [, first, last = first] = /^(\d+)(?:-(\d+))?$/.exec(part) ?? []
    const [a, b] = [Number(first), Number(last)]
    return first === undefined || b > MOST_GROUPS || b < a ? [] : Array.from({ length: b - a + 1 }, (_, i) => a + i)
  })
}
