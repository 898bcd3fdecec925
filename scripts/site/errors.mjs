// A page for each code of an error: what it means, the fix, examples that throw it (of docs/error-examples.md and docs/mistakes.md, whose tests run them), and every message with the
// line that throws it.
import { readFileSync } from 'node:fs'
import { parseInline } from '../../dist/docs/pages/markdownText.js'
import { code, heading, link, soft, text } from '../../dist/docs/pages/page.js'
import { ERROR_EXAMPLE, ERROR_WITHOUT_EXAMPLE, pageText } from '../docs/examples.mjs'
import { errorClasses } from '../errorReference.mjs'

const MISTAKE = /^### (.*)\n\n```js wrong\n([\s\S]*?)```\n\n```text\n([\s\S]*?)```\n\n```js right\n([\s\S]*?)```/gm

/** The examples of docs/mistakes.md: what is wrong, what it throws, and what is right. */
function mistakes(root) {
  const page = readFileSync(`${root}docs/mistakes.md`, 'utf8')
  return [...page.matchAll(MISTAKE)].map(([, title, wrong, thrown, right]) => ({
    ...{ title, wrong: wrong.trimEnd(), thrown: thrown.trimEnd(), right: right.trimEnd(), error: /^(\w+): /.exec(thrown)?.[1] ?? '' },
  }))
}

const ts = (source) => ({ kind: 'code', language: 'ts', text: source })

const programBlocks = ({ source, message }) => [
  heading(2, 'example', 'An example'),
  ts(source.trimEnd()),
  { kind: 'quote', blocks: [text(code(message.trimEnd()))] },
]

/** The pages, with a sentence about each. */
export function errorPages(root, lookup) {
  const examples = mistakes(root)
  const written = pageText('docs/error-examples.md')
  const programs = new Map([...written.matchAll(ERROR_EXAMPLE)].map(([, id, source, message]) => [id, { source, message }]))
  const reasons = new Map([...written.matchAll(ERROR_WITHOUT_EXAMPLE)].map(([, id, why]) => [id, why.replace(/ See \[.*/, '')]))
  const thrown = lookup.model.symbols.flatMap((symbol) => symbol.throws.map((one) => ({ ...one, by: symbol })))
  return errorClasses().map(({ name, code: id, meaning, fix, from }) => {
    const mine = examples.filter(({ error }) => error === name)
    const messages = thrown.filter(({ error, message }) => error === name && message !== null)
    const shown = messages.slice(0, 60)
    const symbol = lookup.model.symbols.find((one) => one.name === name && one.kind === 'class')
    const resolve = (word) => lookup.resolve(symbol?.module ?? '', word)
    const target = symbol === undefined ? null : lookup.targetOf(symbol.id)
    return {
      ...{ path: `errors/${id}`, title: id, crumbs: [{ text: 'errors', page: 'errors' }], summary: meaning },
      blocks: [
        text(target === null ? code(name) : link(target, code(name)), ', from ', code(from ?? ''), '. ', ...parseInline(meaning ?? '', resolve)),
        text({ kind: 'strong', text: ['Fix.'] }, ' ', ...parseInline(`${fix.slice(0, 1).toUpperCase()}${fix.slice(1)}`, resolve)),
        ...(programs.has(id) ? programBlocks(programs.get(id)) : []),
        ...(reasons.has(id) ? [heading(2, 'example', 'No example'), text(...parseInline(reasons.get(id), resolve))] : []),
        ...(mine.length === 0 ? [] : [heading(2, 'mistakes', 'Mistakes'), text('With ', link({ page: 'mistakes' }, 'these tensors'), ':')]),
        ...mine
          .slice(0, 6)
          .flatMap((one, i) => [
            heading(3, `mistake-${i + 1}`, one.title),
            ts(one.wrong),
            { kind: 'quote', blocks: [text(code(one.thrown))] },
            text('Instead:'),
            ts(one.right),
          ]),
        ...(shown.length === 0
          ? []
          : [
              heading(2, 'messages', 'Messages'),
              ...(messages.length > shown.length
                ? [text(soft(`${shown.length} of ${messages.length}; `), link({ page: 'throws' }, 'all of them'))]
                : []),
              {
                kind: 'list',
                isOrdered: false,
                items: shown.map(({ by: of, message, line }) => [
                  text(message.length > 300 ? `${message.slice(0, 300)}…` : message, ' ', link(lookup.lineTarget(of.module, line), code(of.name))),
                ]),
              },
            ]),
      ],
    }
  })
}

/** docs/errors.md with a link from each code to its page. */
export function withErrorLinks(page, pages) {
  const known = new Set(pages.map(({ path }) => path))
  return {
    ...page,
    blocks: page.blocks.flatMap((block) => {
      const id = block.kind === 'heading' ? `errors/${block.text.join('')}` : ''
      return known.has(id) ? [block, text(link({ page: id }, 'Examples and messages'))] : [block]
    }),
  }
}
