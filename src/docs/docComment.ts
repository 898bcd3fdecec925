// Doc comments: `/** text, then @tags */`, and the comment at the head of a file.
import type { Doc } from './model.ts'

/** The text between the marks of a block comment, without the stars at the beginning of its lines. */
function inner(comment: string): string {
  return comment
    .replace(/^\/\*\*?/, '')
    .replace(/\*\/$/, '')
    .split('\n')
    .map((line, i) => (i === 0 ? line.trimStart() : line.replace(/^\s*\*? ?/, '')))
    .join('\n')
    .trim()
}

/** A doc comment as text and tags. A tag begins with its name at the beginning of a line outside of code. */
export function parseDoc(comment: string): Doc {
  const lines = inner(comment.replaceAll('\r\n', '\n')).split('\n')
  const text: string[] = []
  const tags: { name: string; lines: string[] }[] = []
  let isCode = false
  for (const line of lines) {
    if (/^\s*(?:```|~~~)/.test(line)) isCode = !isCode
    const tag = isCode ? null : /^\s*@([A-Za-z]\w*)\s?(.*)$/.exec(line)
    if (tag === null) (tags.at(-1)?.lines ?? text).push(line)
    else tags.push({ name: tag[1] ?? '', lines: [tag[2] ?? ''] })
  }
  return { text: text.join('\n').trim(), tags: tags.map(({ name, lines: of }) => ({ name, text: of.join('\n').trim() })) }
}

/** Several comments of one symbol (overloads, merged declarations) as one; null without any. */
export function mergeDocs(docs: readonly Doc[]): Doc | null {
  if (docs.length === 0) return null
  const texts = [...new Set(docs.map(({ text }) => text).filter((text) => text !== ''))]
  const tags = docs
    .flatMap((doc) => doc.tags)
    .filter(({ name, text }, i, all) => all.findIndex((tag) => tag.name === name && tag.text === text) === i)
  return { text: texts.join('\n\n'), tags }
}

/** Comments that say how a file is processed, not what it is. */
const DIRECTIVE =
  /^(?:[#!/]|@ts-|eslint|oxlint|prettier|istanbul|c8 |v8 |global |jshint|tslint|biome|use strict|[@#]__|sourceMappingURL)|@(?:license|preserve|copyright)\b|copyright|SPDX-License/i

/** The comment at the head of a file: lines of `//`, or a block that is not that of the first declaration. Null without one. */
export function headerOf(source: string): string | null {
  let rest = source
    .replace(/^\uFEFF/, '')
    .replaceAll('\r\n', '\n')
    .replace(/^#!.*\n?/, '')
  for (;;) {
    rest = rest.replace(/^(?:\s*(['"])use strict\1;?)?\s*/, '')
    const lines = /^(?:\/\/.*(?:\n[ \t]*|$))+/.exec(rest)
    const block = lines === null ? /^\/\*[^]*?\*\//.exec(rest) : null
    const found = lines?.[0] ?? block?.[0]
    if (found === undefined) return null
    const text =
      lines === null
        ? inner(found)
        : found
            .split('\n')
            .map((line) => line.replace(/^\s*\/\/ ?/, ''))
            .join('\n')
            .trim()
    rest = rest.slice(found.length)
    // A doc comment directly before a declaration belongs to it, unless it says that it is the file's.
    const isOfDeclaration =
      block !== null &&
      found.startsWith('/**') &&
      /^[ \t]*\n?[ \t]*(?:export|declare|function|class|const|let|var|interface|type|enum|abstract|async|module\.|exports\.|namespace|@\w)/.test(rest)
    const isOfFile = /^@(?:file|fileoverview|overview|module|packageDocumentation)\b/m.test(text)
    if (isOfDeclaration && !isOfFile) return null
    if (DIRECTIVE.test(text) || text === '') continue
    return (
      text
        .replaceAll(/^@(?:file|fileoverview|overview|packageDocumentation)\b[ \t]*/gm, '')
        .replaceAll(/^@module\b.*$/gm, '')
        .trim() || null
    )
  }
}
