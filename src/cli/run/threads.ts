// The process of `tensorfx run --backend threads`: its ranks are its threads.
import { boardOfJob } from '../../distributed/failures/board.ts'
import { failureLine, failureText } from '../../distributed/failures/report.ts'
import type { RankFailure } from '../../distributed/failures/report.ts'
import { writeNow } from '../../distributed/failures/sync.ts'
import { runWorld } from '../../distributed/threads/spawn.ts'

const [, , size = '1', file = '', ...words] = process.argv

// Without the launcher nothing would end this job.
const launcher = process.ppid
setInterval(() => process.ppid === launcher || process.exit(1), 500).unref()

const write = ({ rank }: RankFailure, text: string): void => writeNow(2, text.replaceAll(/^/gm, `[${rank}] `).concat('\n'))

const result = await runWorld(Number(size), new URL('program.js', import.meta.url).href, { args: [file, words], isProgram: true })
if ('failures' in result) {
  const [first, ...others] = result.failures
  boardOfJob()?.claim(first)
  write(first, failureText(first))
  for (const failure of others) write(failure, failureLine(failure))
  process.exit(first.code)
}
