// Markdown files of the repository as pages of the site: markdown-it reads them, and what it finds becomes the blocks of which all pages consist.
import MarkdownIt from 'markdown-it'

const reader = new MarkdownIt({ html: true, linkify: false })

/** The anchor of a heading, as GitHub makes it; `taken` holds those of the page so far. */
export function slugOf(text, taken) {
  const wanted = text
    .toLowerCase()
    .replaceAll(/[^\p{L}\p{N}\s_-]/gu, '')
    .trim()
    .replaceAll(/\s/g, '-')
  let slug = wanted
  for (let i = 1; taken.has(slug); i++) slug = `${wanted}-${i}`
  taken.add(slug)
  return slug
}

const plain = (pieces) => pieces.map((piece) => (typeof piece === 'string' ? piece : piece.kind === 'code' ? piece.text : plain(piece.text))).join('')

/** The pieces of a line. `targetOf` says where an address leads. */
function inlines(tokens, targetOf) {
  const stack = [{ pieces: [] }]
  const put = (piece) => stack.at(-1).pieces.push(piece)
  const close = (make) => put(make(stack.pop().pieces))
  for (const token of tokens) {
    switch (token.type) {
      case 'text':
        if (token.content !== '') put(token.content)
        break
      case 'softbreak':
      case 'hardbreak':
        put(' ')
        break
      case 'code_inline':
        put({ kind: 'code', text: token.content })
        break
      case 'image':
        put({ kind: 'soft', text: [`[${token.content}]`] })
        break
      case 'strong_open':
      case 'em_open':
        stack.push({ pieces: [] })
        break
      case 'strong_close':
        close((text) => ({ kind: 'strong', text }))
        break
      case 'em_close':
        close((text) => ({ kind: 'em', text }))
        break
      case 'link_open':
        stack.push({ pieces: [], to: targetOf(token.attrGet('href')) })
        break
      case 'link_close': {
        const { pieces, to } = stack.pop()
        put({ kind: 'link', text: pieces, to })
        break
      }
      case 'html_inline':
        break
      default:
        throw new Error(`docs: Markdown of kind ${token.type} has no place on a page. Write it another way, or add it to scripts/site/markdown.mjs.`)
    }
  }
  return stack[0].pieces
}

/** Reads the blocks up to the token that closes them; `at` is shared. */
function blocksUntil(end, context) {
  const blocks = []
  const { tokens, targetOf, taken } = context
  while (context.at < tokens.length && tokens[context.at].type !== end) {
    const token = tokens[context.at++]
    switch (token.type) {
      case 'heading_open': {
        const text = inlines(tokens[context.at].children, targetOf)
        context.at += 2
        blocks.push({ kind: 'heading', level: Number(token.tag.slice(1)), text, id: slugOf(plain(text), taken) })
        break
      }
      case 'paragraph_open':
        blocks.push({ kind: 'text', text: inlines(tokens[context.at].children, targetOf) })
        context.at += 2
        break
      case 'fence':
        blocks.push({ kind: 'code', language: token.info.trim().split(' ')[0], info: token.info.trim(), text: token.content.replace(/\n$/, '') })
        break
      case 'code_block':
        blocks.push({ kind: 'code', language: 'text', text: token.content.replace(/\n$/, '') })
        break
      case 'bullet_list_open':
      case 'ordered_list_open': {
        const items = []
        while (tokens[context.at].type === 'list_item_open') {
          context.at++
          items.push(blocksUntil('list_item_close', context))
        }
        context.at++
        blocks.push({ kind: 'list', isOrdered: token.type === 'ordered_list_open', items })
        break
      }
      case 'blockquote_open':
        blocks.push({ kind: 'quote', blocks: blocksUntil('blockquote_close', context) })
        break
      case 'table_open':
        blocks.push(tableOf(context))
        break
      case 'hr':
      case 'html_block':
        break
      default:
        throw new Error(`docs: Markdown of kind ${token.type} has no place on a page. Write it another way, or add it to scripts/site/markdown.mjs.`)
    }
  }
  context.at++
  return blocks
}

function tableOf(context) {
  const { tokens, targetOf } = context
  const rows = []
  for (; tokens[context.at].type !== 'table_close'; context.at++) {
    const { type, children } = tokens[context.at]
    if (type === 'tr_open') rows.push([])
    else if (type === 'inline') rows.at(-1).push(inlines(children, targetOf))
  }
  context.at++
  const [head = [], ...body] = rows
  return { kind: 'table', head: head.map(plain), rows: body }
}

/** The title and the blocks of a Markdown text. Its first heading is the title. */
export function readMarkdown(text, targetOf) {
  const context = { tokens: reader.parse(text, {}), at: 0, targetOf, taken: new Set() }
  const blocks = blocksUntil(null, context)
  const first = blocks.findIndex(({ kind, level }) => kind === 'heading' && level === 1)
  return { title: first < 0 ? '' : plain(blocks[first].text), id: first < 0 ? null : blocks[first].id, blocks: blocks.filter((_, i) => i !== first) }
}

export { plain }
