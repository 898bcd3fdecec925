// `npm run test:resume -- 100 1 gpt lstm`: kills each of these trainings (by default all) 100 times, with moments drawn from seed 1, also while it writes a checkpoint, and looks whether it always goes
// on with the same numbers.
import { killAndResume } from './resumeCampaign.mjs'
import { TRAININGS } from './names.mjs'

const [kills = '20', seed = '1', ...names] = process.argv.slice(2)
let found = 0
for (const training of names.length === 0 ? TRAININGS : names) {
  const { findings, killed } = await killAndResume({ training, kills: Number(kills), seed: Number(seed), steps: 8, say: (line) => console.log(line) })
  for (const finding of findings) console.log(`FOUND: ${finding}`)
  console.log(`${training}: ${killed} kills, ${findings.length} findings`)
  found += findings.length
}
process.exitCode = found === 0 ? 0 : 1
