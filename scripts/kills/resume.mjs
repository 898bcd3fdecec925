// `npm run test:resume -- 100 1`: kills a training program 100 times, with moments drawn from seed 1, also while it writes a checkpoint, and looks whether it always goes on with the same numbers.
import { killAndResume } from './resumeCampaign.mjs'

const [kills = '20', seed = '1'] = process.argv.slice(2)
const { findings, killed } = await killAndResume({ kills: Number(kills), seed: Number(seed), say: (line) => console.log(line) })
for (const finding of findings) console.log(`FOUND: ${finding}`)
console.log(`${killed} kills: ${findings.length} findings`)
process.exitCode = findings.length === 0 ? 0 : 1
