// npm run fuzz:mutation -- N [seed]
import { fuzzMutation, mutationApi } from './mutation.mjs'

const [count = 1000, seed = Date.now() % 1e9] = process.argv.slice(2).map(Number)
const dist = (entry) => import(new URL(`../../dist/${entry === 'tensorfx' ? 'index' : `entries/${entry}`}.js`, import.meta.url).href)
const api = await mutationApi(dist)
console.log(`fuzz:mutation: ${count} programs, seed ${seed}`)
const found = new Map()
for (let i = 0; i < count; i++) {
  const finding = fuzzMutation(api, seed + i)
  if (finding === null) continue
  const where = finding.expected?.replace(/^\d+ /, '').replace(/:.*/s, '')
  found.set(where, (found.get(where) ?? 0) + 1)
  if (found.get(where) > 1) continue
  console.log(
    `seed ${finding.seed} (${finding.steps.join(', ')}):\n  without changes: ${finding.expected?.slice(0, 400)}\n  with them:       ${finding.got?.slice(0, 400)}`,
  )
  process.exitCode = 1
}
console.log(found.size === 0 ? 'no findings' : [...found].map(([where, times]) => `${where}: ${times}`).join('\n'))
