// npm run flow: the files that some calls pass through, in the order in which the first function of each is entered. Recorded, not written by hand: the built
// package is copied with a note at the head of each function, and the calls run on that copy.
//
//   npm run flow                 prints the lists
//   npm run flow -- --write      writes them into CONTRIBUTING.md; a test compares
import '../bench/oneThread.mjs'
import { cpSync, existsSync, mkdtempSync, readFileSync, readdirSync, rmSync, symlinkSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { fileURLToPath, pathToFileURL } from 'node:url'
import { parse } from '@babel/parser'

// The files of checks that only tests switch on are not part of a call.
delete process.env.TENSORFX_VERIFY

const root = fileURLToPath(new URL('..', import.meta.url))

/** The calls. `prepare` is not recorded; it returns what is; `only`: the files to list. To add one, add it here. */
const flows = [
  {
    title: '`torch.relu(x)`, the first time: later calls find the kernel in the cache',
    prepare: ({ torch }) => {
      const x = torch.tensor([-1, 1])
      return () => torch.relu(x)
    },
  },
  {
    title: '`fx.symbolicTrace((x) => torch.relu(x).add(1))`',
    prepare: ({ fx, torch }) => {
      const f = (x) => torch.relu(x).add(1)
      return () => fx.symbolicTrace(f)
    },
  },
  {
    title: '`compile((x) => torch.relu(x).add(1))(x)`, the first call: it is captured, compiled and run (operators, kernels and fx are left out)',
    prepare: ({ compile, torch }) => {
      const x = torch.tensor([-1, 1])
      const f = compile((t) => torch.relu(t).add(1))
      return () => f(x)
    },
    only: /^src\/(?!ops|kernels|protocol|tensor\/shape|fx\/|pytree|provenance|module|debug)/,
  },
  {
    title: '`compile((x) => torch.relu(x).add(1))(x)`, the second call: it is followed, and the compiled code runs (the same left out)',
    prepare: ({ compile, torch }) => {
      const x = torch.tensor([-1, 1])
      const f = compile((t) => torch.relu(t).add(1))
      f(x)
      return () => f(x)
    },
    only: /^src\/(?!ops|kernels|protocol|tensor\/shape|fx\/|pytree|provenance|module|debug)/,
  },
]

/** A module with a call of `entered` at the head of every function. */
function instrument(code, file) {
  const inserts = []
  const visit = (node, name) => {
    if (Array.isArray(node)) {
      for (const item of node) visit(item, name)
      return
    }
    if (node === null || typeof node !== 'object') return
    const own = node.id?.name ?? (node.type === 'MethodDefinition' || node.type === 'Property' ? node.key?.name : undefined) ?? name
    if (/^(?:FunctionDeclaration|FunctionExpression|ArrowFunctionExpression)$/.test(node.type) && node.body !== null) {
      const call = `globalThis.entered(${JSON.stringify(file)}, ${JSON.stringify(own ?? '')})`
      if (node.body.type === 'BlockStatement') inserts.push([node.body.start + 1, `${call};`])
      else inserts.push([node.body.start, `(${call}, (`], [node.body.end, '))'])
    }
    for (const [key, child] of Object.entries(node))
      if (key !== 'parent') visit(child, node.type === 'VariableDeclarator' || own !== name ? own : name)
  }
  visit(parse(code, { sourceType: 'module', plugins: ['estree'] }).program, undefined)
  let out = code
  for (const [at, text] of inserts.toSorted((a, b) => b[0] - a[0])) out = out.slice(0, at) + text + out.slice(at)
  return out
}

/** Markdown: a list of files with the function that is entered first, for each flow. */
async function recorded() {
  if (!existsSync(join(root, 'dist/index.js'))) throw new Error('There is no dist/. Run npm run build first.')
  const work = mkdtempSync(join(tmpdir(), 'tensorfx-flow-'))
  try {
    cpSync(join(root, 'dist'), join(work, 'dist'), { recursive: true })
    cpSync(join(root, 'package.json'), join(work, 'package.json'))
    symlinkSync(join(root, 'node_modules'), join(work, 'node_modules'))
    for (const name of readdirSync(join(work, 'dist'), { recursive: true, encoding: 'utf8' }).filter((n) => n.endsWith('.js'))) {
      const path = join(work, 'dist', name)
      writeFileSync(path, instrument(readFileSync(path, 'utf8'), `src/${name.replace(/\.js$/, '.ts')}`))
    }
    let files = null
    globalThis.entered = (file, name) => {
      if (files !== null && !files.has(file)) files.set(file, name)
    }
    const tensorfx = await import(pathToFileURL(join(work, 'dist/index.js')).href)
    const sections = flows.map(({ title, prepare, only = /^/ }) => {
      const run = prepare(tensorfx)
      files = new Map()
      run()
      const passed = [...files].filter(([file]) => only.test(file))
      files = null
      const lines = passed.map(([file, name], i) => `${i + 1}. \`${file}\`${name === '' ? '' : `: ${name}`}`)
      return `${title}:\n\n${lines.join('\n')}`
    })
    return sections.join('\n\n')
  } finally {
    rmSync(work, { recursive: true, force: true })
  }
}

const START = '<!-- flow: written by npm run flow -- --write -->'
const END = '<!-- /flow -->'

const text = await recorded()
console.log(text)
if (process.argv.includes('--write')) {
  const page = join(root, 'CONTRIBUTING.md')
  const old = readFileSync(page, 'utf8')
  const [start, end] = [old.indexOf(START), old.indexOf(END)]
  if (start < 0 || end < 0) throw new Error(`CONTRIBUTING.md has no lines '${START}' and '${END}'`)
  writeFileSync(page, `${old.slice(0, start + START.length)}\n\n${text}\n\n${old.slice(end)}`)
}
