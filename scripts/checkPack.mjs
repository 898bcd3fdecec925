// npm run check:pack: the package as it would be published. publint and attw pass (all entries with TENSORFX_FULL=1); the links of its pages lead to files in it; and a new project that installs it runs the
// tour and the README's examples, compiles under the strictest options, is linted with the packed rules, and, where there is a Deno, runs there without any permission.
import { execFileSync, spawnSync } from 'node:child_process'
import { cpSync, existsSync, mkdirSync, mkdtempSync, readFileSync, readdirSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { dirname, join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { day } from './browser.mjs'
import { STRICT, examplesOf, withoutTypes } from './docs/examples.mjs'

const root = fileURLToPath(new URL('..', import.meta.url))
const isFull = process.env.TENSORFX_FULL === '1'
/** How many days it takes until attw has read every entry. */
const TURNS = 5
const run = (command, args, cwd) => execFileSync(command, args, { cwd, stdio: ['ignore', 'pipe', 'inherit'], encoding: 'utf8' })
const fail = (message) => {
  throw new Error(`check:pack: ${message}`)
}

/** The relative links of the pages in a package that lead to no file in it. */
function brokenLinks(folder) {
  const pages = readdirSync(folder, { recursive: true, encoding: 'utf8' }).filter((name) => name.endsWith('.md'))
  return pages.flatMap((page) => {
    const text = readFileSync(join(folder, page), 'utf8').replaceAll(/```[\s\S]*?```/g, '')
    const targets = [...text.matchAll(/\]\(([^)\s]+)\)/g)].map((match) => match[1]).filter((target) => !/^(?:[a-z]+:|#)/.test(target))
    return targets.filter((target) => !existsSync(join(folder, dirname(page), target.split('#')[0]))).map((target) => `${page}: ${target}`)
  })
}

run('npm', ['run', 'build'], root)
const work = mkdtempSync(join(tmpdir(), 'tensorfx-pack-'))
try {
  const [{ filename }] = JSON.parse(run('npm', ['pack', '--json', '--ignore-scripts', '--pack-destination', work], root))
  const tarball = join(work, filename)
  console.log(run('npx', ['publint', '--strict', tarball], root))
  // Of each entry attw reads all declarations that it reaches, in four ways of resolution: with the main entry a fifth of the others, another fifth each day.
  const { exports: published } = JSON.parse(readFileSync(join(root, 'package.json'), 'utf8'))
  const checked = Object.keys(published).filter((name, i) => name === '.' || isFull || i % TURNS === day % TURNS)
  console.log(run('npx', ['attw', tarball, '--profile', 'esm-only', '--entrypoints', ...checked], root))

  const project = join(work, 'tour')
  cpSync(join(root, 'examples/tour'), project, { recursive: true })
  const manifest = JSON.parse(readFileSync(join(project, 'package.json'), 'utf8'))
  manifest.dependencies.tensorfx = `file:${tarball}`
  writeFileSync(join(project, 'package.json'), JSON.stringify(manifest, null, 2))
  run('npm', ['install', '--no-audit', '--no-fund'], project)
  console.log(run('node', ['tour.mjs'], project))

  const installed = join(project, 'node_modules/tensorfx')
  const broken = brokenLinks(installed)
  if (broken.length > 0) fail(`links to files that are not in the package:\n${broken.join('\n')}`)
  console.log('ok: the links of all pages lead to files in the package')

  const examples = examplesOf(readFileSync(join(installed, 'README.md'), 'utf8'))
  if (examples.length < 5) fail(`the README has only ${examples.length} examples`)
  mkdirSync(join(project, 'readme'))
  for (const [i, { code }] of examples.entries()) {
    writeFileSync(join(project, 'readme', `${i}.mjs`), withoutTypes(code))
    run('node', [`readme/${i}.mjs`], project)
  }
  console.log(`ok: ${examples.length} examples of the README run`)

  const { exports } = JSON.parse(readFileSync(join(installed, 'package.json'), 'utf8'))
  const entries = Object.keys(exports).filter((name) => name !== './package.json')
  const imports = entries.map((name, i) => `import * as entry${i} from '${name.replace('.', 'tensorfx')}'`)
  writeFileSync(
    join(project, 'strict.ts'),
    `${imports.join('\n')}\nexport const entries: readonly object[] = [${entries.map((_, i) => `entry${i}`).join(', ')}]\n`,
  )
  writeFileSync(join(project, 'tsconfig.json'), JSON.stringify({ compilerOptions: STRICT, files: ['strict.ts'] }))
  const tsc = spawnSync(process.execPath, [join(root, 'node_modules/typescript/bin/tsc'), '-p', project], { encoding: 'utf8' })
  if (tsc.status !== 0) fail(`the declarations do not compile:\n${tsc.stdout}`)
  console.log(`ok: ${entries.length} entries compile under strict options, the declarations checked`)

  const config = {
    jsPlugins: [{ name: 'tensorfx', specifier: 'tensorfx/lint-rules' }],
    categories: { correctness: 'off' },
    rules: { 'tensorfx/no-tensor-condition': 'error' },
  }
  writeFileSync(join(project, '.oxlintrc.json'), JSON.stringify(config))
  writeFileSync(join(project, 'condition.mjs'), 'export const f = (x) => (x.relu().gt(0) ? x : x.neg())\n')
  const lint = spawnSync(process.execPath, [join(root, 'node_modules/oxlint/bin/oxlint'), 'condition.mjs'], { cwd: project, encoding: 'utf8' })
  if (!lint.stdout.includes('no-tensor-condition')) fail(`the packed lint rules found nothing:\n${lint.stdout}${lint.stderr}`)
  console.log('ok: oxlint runs the packed lint rules')

  if (spawnSync('deno', ['--version']).status === 0) {
    // Without a terminal Deno refuses what it would ask for.
    console.log(run('deno', ['run', '--no-prompt', '--node-modules-dir=manual', 'tour.mjs'], project))
    console.log('ok: Deno runs the tour without permissions')
  } else console.log('There is no deno here; it was not tried.')
} finally {
  rmSync(work, { recursive: true, force: true })
}
