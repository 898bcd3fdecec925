// npm run docs:same: documents this package from another folder, with its files in another order shared by two threads in another way and its pages written by one, and compares every
// byte with its pages from here.
import { cpSync, mkdtempSync, readFileSync, readdirSync, realpathSync, rmSync, symlinkSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { loadCompiler } from '../../dist/docs/compiler.js'
import { documentProject } from '../../dist/docs/index.js'
import { Lookup } from '../../dist/docs/pages/lookup.js'
import { filesOf, writePages } from '../../dist/docs/pages/site.js'
import { readProject } from '../../dist/docs/project.js'
import { modelOf } from '../../dist/docs/read/index.js'
import { readShared } from '../../dist/docs/read/shared.js'

const root = fileURLToPath(new URL('../../', import.meta.url))
const SITE = { formats: ['html', 'md', 'json'], sourceUrl: null }
const folder = mkdtempSync(join(tmpdir(), 'tensorfx elsewhere '))
try {
  const out = join(folder, 'site')
  await documentProject(root, { out, isCheck: false, ...SITE })
  const ts = loadCompiler(root)
  const project = readProject(ts, root)
  const { sources, tests } = project
  const other = join(folder, 'a copy')
  // With all of src/: files that git does not know are read where others import them.
  for (const path of ['src', 'package.json', 'tsconfig.json', ...tests]) cpSync(join(root, path), join(other, path), { recursive: true })
  symlinkSync(join(root, 'node_modules'), join(other, 'node_modules'))

  // Every seventh file first: neighbours, which one thread reads here, are read by two there.
  const mixed = (paths) => paths.toSorted((a, b) => (paths.indexOf(a) % 7) - (paths.indexOf(b) % 7)).toReversed()
  const shuffled = { ...project, root: realpathSync(other), options: readProject(ts, other).options, sources: mixed(sources), tests: mixed(tests) }
  const { model, sources: texts } = modelOf(ts, shuffled, await readShared(ts, shuffled, shuffled))
  const lookup = new Lookup(model, null)
  const there = filesOf(lookup, writePages(lookup, texts, SITE), SITE)
  const here = readdirSync(out, { recursive: true, withFileTypes: true })
    .filter((entry) => entry.isFile() && !entry.name.startsWith('.'))
    .map((entry) => join(entry.parentPath ?? entry.path, entry.name).slice(out.length + 1))
  const names = [...new Set([...here, ...there.keys()])].sort()
  const different = names.filter((name) => !here.includes(name) || readFileSync(join(out, name), 'utf8') !== there.get(name))
  for (const name of different.slice(0, 20)) console.log(`different: ${name}`)
  console.log(`${names.length} files, ${different.length} different`)
  process.exitCode = different.length === 0 ? 0 : 1
} finally {
  rmSync(folder, { recursive: true, force: true })
}
