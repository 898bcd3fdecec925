// Pages as data: blocks of text, which are written as HTML or as Markdown. Places that a page leads to are names of pages and anchors, so that dead links are found before anything is
// written.

/** Where a link leads: a page of ours and a place on it, or an address. */
export type Target = { readonly page: string; readonly anchor?: string } | { readonly url: string }

/** A piece of text. */
export type Inline =
  | string
  | { readonly kind: 'code'; readonly text: string }
  | { readonly kind: 'strong' | 'em' | 'soft'; readonly text: readonly Inline[] }
  | { readonly kind: 'link'; readonly text: readonly Inline[]; readonly to: Target }
  /** A place that links lead to. */
  | { readonly kind: 'anchor'; readonly id: string; readonly text: readonly Inline[] }

/** A piece of a page. */
export type Block =
  | { readonly kind: 'heading'; readonly level: number; readonly text: readonly Inline[]; readonly id: string | null }
  | { readonly kind: 'text'; readonly text: readonly Inline[] }
  | { readonly kind: 'code'; readonly language: string; readonly text: string }
  | { readonly kind: 'list'; readonly isOrdered: boolean; readonly items: readonly (readonly Block[])[] }
  /** Tables have at most three columns, so that they fit phones. */
  | { readonly kind: 'table'; readonly head: readonly string[]; readonly rows: readonly (readonly (readonly Inline[])[])[] }
  | { readonly kind: 'quote'; readonly blocks: readonly Block[] }
  | { readonly kind: 'folded'; readonly summary: readonly Inline[]; readonly blocks: readonly Block[] }
  /** A source with an anchor for each line, `L12`, from a line on. */
  | { readonly kind: 'source'; readonly text: string; readonly from: number; readonly hasAnchors: boolean }
  /** A drawing: SVG in HTML, Mermaid in Markdown. */
  | { readonly kind: 'drawing'; readonly svg: string; readonly mermaid: string; readonly targets: readonly Target[] }

/** A page. Its path has no end such as `.html`. */
export interface Page {
  readonly path: string
  readonly title: string
  /** The pages above it, from the top. */
  readonly crumbs: readonly { readonly text: string; readonly page: string }[]
  readonly blocks: readonly Block[]
  /** Sources have no page in Markdown, which has no anchors in code. */
  readonly isSource?: boolean
}

export const code = (text: string): Inline => ({ kind: 'code', text })
export const link = (to: Target, ...text: readonly Inline[]): Inline => ({ kind: 'link', text, to })
export const soft = (...text: readonly Inline[]): Inline => ({ kind: 'soft', text })
export const text = (...of: readonly Inline[]): Block => ({ kind: 'text', text: of })
export const heading = (level: number, id: string | null, ...of: readonly Inline[]): Block => ({ kind: 'heading', level, text: of, id })
export const list = (items: readonly (readonly Inline[])[]): Block => ({
  kind: 'list',
  isOrdered: false,
  items: items.map((item) => [text(...item)]),
})
export const table = (head: readonly string[], rows: readonly (readonly (readonly Inline[])[])[]): Block => ({ kind: 'table', head, rows })

/** Pieces with something between each two. */
export const joined = (pieces: readonly (readonly Inline[])[], between: Inline): readonly Inline[] =>
  pieces.flatMap((piece, i) => (i === 0 ? piece : [between, ...piece]))

/** The places that a page has, and those that it leads to. */
export interface PageLinks {
  readonly path: string
  readonly ids: readonly string[]
  readonly targets: readonly Target[]
}

export function linksOf(page: Page): PageLinks {
  const [ids, targets]: [string[], Target[]] = [[], page.crumbs.map(({ page: to }) => ({ page: to }))]
  const inlines = (pieces: readonly Inline[]): void => {
    for (const piece of pieces) {
      if (typeof piece === 'string' || piece.kind === 'code') continue
      if (piece.kind === 'link') targets.push(piece.to)
      if (piece.kind === 'anchor') ids.push(piece.id)
      inlines(piece.text)
    }
  }
  const blocks = (of: readonly Block[]): void => {
    for (const block of of) {
      if (block.kind === 'heading') {
        if (block.id !== null) ids.push(block.id)
        inlines(block.text)
      } else if (block.kind === 'text') inlines(block.text)
      else if (block.kind === 'list') for (const item of block.items) blocks(item)
      else if (block.kind === 'table') for (const row of block.rows) for (const cell of row) inlines(cell)
      else if (block.kind === 'quote') blocks(block.blocks)
      else if (block.kind === 'folded') {
        inlines(block.summary)
        blocks(block.blocks)
      } else if (block.kind === 'source' && block.hasAnchors) ids.push(...block.text.split('\n').map((_, i) => `L${block.from + i}`))
      else if (block.kind === 'drawing') targets.push(...block.targets)
    }
  }
  blocks(page.blocks)
  return { path: page.path, ids, targets }
}
