// The operators: a page for each declaration of the operator table, with its schema, facts, doc, example, tests, and the declaration itself, which holds its formula and derivative.
import { readFileSync, readdirSync } from 'node:fs'
import { relative } from 'node:path'
import { operatorRows } from '../../dist/cli/operatorTable.js'
import { parseDoc } from '../../dist/docs/docComment.js'
import { docBlocks } from '../../dist/docs/pages/symbolBlocks.js'
import { code, heading, link, list, soft, table, text } from '../../dist/docs/pages/page.js'
import { allOps } from '../../dist/entries/ops.js'
import { findOperators } from '../generateOps.mjs'

const WORDS = {
  pointwise: 'one element for each element, in one loop',
  reduction: 'a reduction over dimensions',
  kernel: 'a kernel of its own',
  view: 'a view, which shares the memory of its argument',
  composite: 'made of other operators',
}
const COMPILED = {
  fused: 'fused into loops with the operators around it',
  template: 'a kernel that takes the pointwise operators after it',
  view: 'a view, without a loop',
  'its parts': 'as the operators that it is made of',
  'eager kernel': 'the kernel of eager mode',
}

/** Which test files call something by a name: a file, and the names after a dot. */
function calledInTests(root) {
  const files = readdirSync(`${root}test`, { recursive: true, encoding: 'utf8' })
    .map((name) => name.replaceAll('\\', '/'))
    .filter((name) => name.endsWith('.test.ts') && /^(?:ops|autograd|tensor|nn|pytorch|inductor|compile)\//.test(name))
    .sort()
  const found = new Map()
  for (const file of files)
    for (const call of new Set(readFileSync(`${root}test/${file}`, 'utf8').match(/\.[a-zA-Z]\w*(?=\()/g)))
      found.set(call.slice(1), [...(found.get(call.slice(1)) ?? []), `test/${file}`])
  return found
}

/** The code of a declaration: from `export const` to the line that ends it. */
function declarationOf(source, constant) {
  const lines = source.split('\n')
  const from = lines.findIndex((line) => line.startsWith(`export const ${constant}:`))
  const length = lines.slice(from).findIndex((line) => line.startsWith('})'))
  return { line: from + 1, code: lines.slice(from, from + length + 1).join('\n') }
}

/** The operators with pages: their names here, and the page of each; names of other forms lead to the page of what they are forms of. */
export function operatorPages(root, lookup) {
  const rows = new Map(operatorRows().map((row) => [row.torchName, row]))
  const ops = new Map(allOps().map((op) => [op.qualname, op]))
  const tests = calledInTests(root)
  const texts = new Map()
  const declared = findOperators(`${root}src/ops`).map((op) => ({ ...op, qualname: `${op.namespace}.${/^\w+/.exec(op.schema)[0]}` }))
  const pageOf = new Map()
  const taken = new Set()
  for (const { qualname } of declared) {
    let name = `operators/${rows.get(qualname)?.name ?? qualname}`
    while (taken.has(name.toLowerCase())) name += '~'
    taken.add(name.toLowerCase())
    pageOf.set(qualname, name)
  }
  const forms = new Map()
  for (const op of ops.values()) {
    const of = op.aliasOf ?? op.functional
    if (of === null || of === undefined || pageOf.has(op.qualname)) continue
    const base = pageOf.has(of.qualname) ? of.qualname : (of.aliasOf ?? of.functional)?.qualname
    if (base === undefined || !pageOf.has(base)) continue
    pageOf.set(op.qualname, pageOf.get(base))
    forms.set(base, [...(forms.get(base) ?? []), op])
  }
  const pages = declared.map(({ qualname, file, constant, doc }) => {
    const path = relative(root, file).replaceAll('\\', '/')
    if (!texts.has(path)) texts.set(path, readFileSync(file, 'utf8'))
    const row = rows.get(qualname)
    const { line, code: declaration } = declarationOf(texts.get(path), constant)
    const short = row.name.slice(row.name.lastIndexOf('.') + 1)
    const files = (tests.get(short) ?? []).slice(0, 12)
    const others = (forms.get(qualname) ?? []).map((op) => [
      code(rows.get(op.qualname)?.name ?? op.qualname),
      soft(op.aliasOf === null ? ' in place' : ' the same'),
    ])
    const facts = [
      ['in PyTorch', [code(row.torchName)]],
      ['dtypes', [row.dtypes]],
      ['gradient', [row.gradient]],
      ['eager', [WORDS[row.how] ?? row.how]],
      ['compiled', [COMPILED[row.compiled] ?? row.compiled]],
    ]
    return {
      ...{ path: pageOf.get(qualname), title: row.name, crumbs: [{ text: 'operators', page: 'operators' }] },
      summary: parseDoc(`/**${doc}*/`).text,
      blocks: [
        { kind: 'code', language: 'text', text: row.schema },
        ...docBlocks(parseDoc(`/**${doc}*/`), (word) => lookup.resolve(path, word)),
        table(
          ['', ''],
          facts.map(([name, value]) => [[soft(name)], value]),
        ),
        ...(others.length === 0 ? [] : [heading(2, 'forms', 'Other forms'), list(others)]),
        heading(2, 'declaration', 'Declaration'),
        text(
          'Everything about the operator is in one object: values, derivative, and what the compiler makes of it. ',
          link(lookup.lineTarget(path, line), code(`${path}:${line}`)),
        ),
        { kind: 'code', language: 'ts', text: declaration },
        heading(2, 'tests', 'Tests'),
        files.length === 0
          ? text('No test calls it by this name; tables of operators run it: ', code('test/ops'), ', ', code('test/pytorch'), '.')
          : list(files.map((name) => [code(name)])),
      ],
    }
  })
  return { pages, pageOf, nameOf: new Map([...rows.values()].map((row) => [row.name, row.torchName])) }
}

/** docs/operators.md with a link from each operator to its page. */
export function withOperatorLinks(page, { pageOf, nameOf }) {
  let namespace = ''
  return {
    ...page,
    blocks: page.blocks.map((block) => {
      if (block.kind === 'heading') namespace = block.text.map((piece) => (typeof piece === 'string' ? piece : piece.text)).join('')
      if (block.kind !== 'table') return block
      const inside = namespace === 'Methods of tensors only' ? 'torch.Tensor' : namespace.startsWith('Internal') ? 'torch.ops.tensorfx' : namespace
      const linked = block.rows.map((row) => {
        const [first] = row[0]
        const target = first?.kind === 'code' ? pageOf.get(nameOf.get(`${inside}.${first.text}`)) : undefined
        return target === undefined ? row : [[link({ page: target }, first)], ...row.slice(1)]
      })
      return { ...block, rows: linked }
    }),
  }
}
