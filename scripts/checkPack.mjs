// npm run check:pack: the package as it would be published passes publint and attw, and an example project that installs it runs the tour.
import { execFileSync } from 'node:child_process'
import { cpSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'

const root = fileURLToPath(new URL('..', import.meta.url))
const run = (command, args, cwd) => execFileSync(command, args, { cwd, stdio: ['ignore', 'pipe', 'inherit'], encoding: 'utf8' })

run('npm', ['run', 'build'], root)
const work = mkdtempSync(join(tmpdir(), 'tensorfx-pack-'))
try {
  const [{ filename }] = JSON.parse(run('npm', ['pack', '--json', '--pack-destination', work], root))
  const tarball = join(work, filename)
  console.log(run('npx', ['publint', '--strict', tarball], root))
  console.log(run('npx', ['attw', tarball, '--profile', 'esm-only'], root))
  cpSync(join(root, 'examples/tour'), join(work, 'tour'), { recursive: true })
  const manifest = JSON.parse(readFileSync(join(work, 'tour/package.json'), 'utf8'))
  manifest.dependencies.tensorfx = `file:${tarball}`
  writeFileSync(join(work, 'tour/package.json'), JSON.stringify(manifest, null, 2))
  run('npm', ['install', '--no-audit', '--no-fund'], join(work, 'tour'))
  console.log(run('node', ['tour.mjs'], join(work, 'tour')))
} finally {
  rmSync(work, { recursive: true, force: true })
}
