// Part of npm run build: removes from dist/ what has no source any more, since tsc leaves it there.
import { existsSync, readdirSync, rmSync } from 'node:fs'
import { fileURLToPath } from 'node:url'

const [dist, src] = ['../dist/', '../src/'].map((folder) => fileURLToPath(new URL(folder, import.meta.url)))
const COMPILED = /(\.d)?\.[jt]s(\.map)?$/

for (const name of readdirSync(dist, { recursive: true }))
  if (COMPILED.test(name) && !existsSync(src + name.replace(COMPILED, '.ts'))) rmSync(dist + name)
