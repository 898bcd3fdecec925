// `npm run test:kills -- 50 1`: kills a training program 50 times, with moments drawn from seed 1, and looks whether it always goes on with the same numbers.
import { spawnSync } from 'node:child_process'
import { killAndResume } from './campaign.mjs'

const [kills = '50', seed = '1'] = process.argv.slice(2)
const backends = spawnSync('mpirun', ['--version']).status === 0 ? ['threads', 'mpi'] : ['threads']
const ways = ['flat', 'orig', 'rows', 'ddp']
let [total, found] = [0, 0]
for (const [i, way] of ways.entries()) {
  const share = Math.ceil((Number(kills) - total) / (ways.length - i))
  const { findings, killed, kinds } = await killAndResume({
    kills: share,
    seed: Number(seed) + i,
    backends,
    way,
    say: (line) => console.log(`${way} ${line}`),
  })
  for (const finding of findings) console.log(`FOUND: ${finding}`)
  total += killed
  found += findings.length
  console.log(`${way}: ${killed} kills (${JSON.stringify(kinds)}), ${findings.length} findings`)
}
console.log(`${total} kills on ${backends.join(' and ')}: ${found} findings`)
process.exitCode = found === 0 ? 0 : 1
