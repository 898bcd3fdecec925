// What is written in the box of a node, and how large the box is. Widths are estimated from the letters, since the layout is computed where there are no fonts.
import type { PageNode } from '../pageData.ts'
import type { Group } from './tree.ts'

/** What a node does, by which it is coloured. */
export type Category = 'input' | 'parameter' | 'layer' | 'activation' | 'normalization' | 'pooling' | 'shape' | 'math'

/** A line in a box. */
export interface BoxLine {
  readonly text: string
  readonly style: 'title' | 'name' | 'detail'
}

/** The content and size of a box. */
export interface BoxContent {
  readonly lines: readonly BoxLine[]
  readonly w: number
  readonly h: number
}

export const TITLE_HEIGHT = 19
export const LINE_HEIGHT = 15
export const PADDING_X = 12
export const PADDING_Y = 8
export const TITLE_SIZE = 13
export const LINE_SIZE = 11

const CATEGORIES: readonly (readonly [Category, RegExp])[] = [
  ['normalization', /norm|dropout/],
  ['activation', /relu|gelu|elu|silu|swish|mish|sigmoid|softmax|softplus|softsign|tanh|hardt|threshold/],
  ['pooling', /pool/],
  ['layer', /conv|linear|matmul|^(?:b?a?d*mm|bmm|mv|dot|einsum)$|embedding|lstm|gru|rnn|attention|bilinear/],
  [
    'shape',
    /view|reshape|permute|transpose|flatten|squeeze|expand|repeat|chunk|split|stack|^cat$|concat|slice|select|gather|getitem|index|contiguous|pad|roll|flip|^t$|^size$|unbind|movedim/,
  ],
]

/** The last part of what a node calls: `relu` of `torch.nn.functional.relu`, the class of a layer. */
export function operation(node: PageNode): string {
  if (node.op === 'call_module') return node.type ?? node.target
  if (node.op === 'placeholder' || node.op === 'output') return node.name
  if (node.op === 'get_attr') return node.target
  return node.target.split('.').at(-1) ?? node.target
}

/** The colour of a node. */
export function categoryOf(node: PageNode): Category {
  // Every box is drawn in the colour of its category, at each step of a drag.
  let category = categories.get(node)
  if (category === undefined) categories.set(node, (category = categorize(node)))
  return category
}

const categories = new WeakMap<PageNode, Category>()

function categorize(node: PageNode): Category {
  if (node.op === 'placeholder' || node.op === 'output') return 'input'
  if (node.op === 'get_attr') return 'parameter'
  const name = operation(node).toLowerCase()
  const found = CATEGORIES.find(([, pattern]) => pattern.test(name))?.[0]
  return found ?? (node.op === 'call_module' && node.tensors.length > 0 ? 'layer' : 'math')
}

const clip = (text: string, most: number): string => (text.length > most ? `${text.slice(0, most - 1)}…` : text)
const sizes = (shape: readonly number[]): string => `⟨${shape.length === 0 ? 'scalar' : shape.join('×')}⟩`

/** The box of a node. */
export function nodeBox(node: PageNode): BoxContent {
  const title = operation(node)
  const lines: BoxLine[] = [{ text: clip(title, 30), style: 'title' }]
  if (node.name !== title) lines.push({ text: clip(node.name, 34), style: 'name' })
  if (node.op === 'call_module') {
    for (const tensor of node.tensors.filter((t) => t.kind === 'parameter').slice(0, 3))
      lines.push({ text: clip(`${tensor.name} ${sizes(tensor.shape)}`, 34), style: 'detail' })
  }
  const spec =
    node.spec ?? (node.op === 'get_attr' && node.tensors[0] !== undefined ? `${node.tensors[0].dtype} ${sizes(node.tensors[0].shape)}` : null)
  if (spec !== null) lines.push({ text: clip(spec, 36), style: 'detail' })
  return boxOf(lines, 0)
}

/** The box of a closed group. */
export function groupBox(group: Group): BoxContent {
  const title = group.className === '' ? group.path : group.className
  const lines: BoxLine[] = [{ text: clip(title, 30), style: 'title' }]
  if (group.path !== title) lines.push({ text: clip(group.path, 34), style: 'name' })
  lines.push({ text: group.size === 1 ? '1 node' : `${group.size} nodes`, style: 'detail' })
  return boxOf(lines, 18)
}

/** The width that the heading of an open group needs. */
export const headingWidth = (group: Group): number => textWidth(`${group.className}  ${group.path}`, LINE_SIZE) + 44

function boxOf(lines: readonly BoxLine[], extra: number): BoxContent {
  const widths = lines.map(({ text, style }) => textWidth(text, style === 'title' ? TITLE_SIZE : LINE_SIZE) * (style === 'title' ? 1.06 : 1))
  // Widths in steps, so that more groups have the same layout, which is then computed once.
  const w = Math.ceil((Math.max(64, ...widths) + 2 * PADDING_X + extra) / 8) * 8
  return { lines, w, h: TITLE_HEIGHT + (lines.length - 1) * LINE_HEIGHT + 2 * PADDING_Y - 3 }
}

/** The width of each kind of letter in a usual sans-serif face, as a share of its size. */
function letterWidth(letter: string): number {
  if (/[iljI.,:;|!'`]/.test(letter)) return 0.3
  if (/[frt()[\]{}\-/ "]/.test(letter)) return 0.38
  if (/[mwMW@%]/.test(letter)) return 0.9
  if (/[A-Z&×⟨⟩]/.test(letter)) return 0.7
  return letter.charCodeAt(0) > 0x2e80 ? 1 : 0.6
}

const known = new Map<string, number>()

/** About how wide a text is at a size of the font. */
export function textWidth(text: string, size: number): number {
  let sum = 0
  for (const letter of text) {
    const width = known.get(letter) ?? letterWidth(letter)
    known.set(letter, width)
    sum += width
  }
  return sum * size
}
