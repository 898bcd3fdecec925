// `tensorfx profile`: runs a script, and tells where its time goes.
import { basename } from 'node:path'
import { startProfile } from '../debug/profile/profile.ts'
import type { Profile } from '../debug/profile/profile.ts'
import { isProfileColumn, isProfileGroup } from '../debug/profile/columns.ts'
import { ArgumentError } from '../errors/index.ts'
import { JSON_WORD, numberOf } from './line.ts'
import type { Line, Output, Result } from './line.ts'
import { writeText } from './pages.ts'
import { reportOn, scriptOf } from './script.ts'
import { PLAIN } from './terminal.ts'

/** Runs `tensorfx profile`. */
export async function profileScript(line: Line, { terminal = PLAIN }: Output): Promise<Result> {
  const { operands, options } = line
  const { file, words } = scriptOf(operands)
  const [groupBy, sortBy] = [options.get('--by') ?? 'operator', options.get('--sort') ?? 'selfTime']
  // The options' types have checked them.
  if (!isProfileGroup(groupBy) || !isProfileColumn(sortBy)) throw new ArgumentError(`there is no ${groupBy} or ${sortBy}.`)
  const files = [
    ['--chrome', (profile: Profile) => profile.exportChromeTrace()],
    ['--flame', (profile: Profile) => profile.flamePage({ title: basename(file) })],
  ] as const
  const running = startProfile(1)
  return reportOn(file, words, options.has(JSON_WORD), () => {
    running.stop()
    const profile = running.profile()
    const averages = profile.keyAverages({ groupBy })
    const written = files.flatMap(([name, textOf]) => {
      const path = options.get(name)
      if (path === undefined) return []
      writeText(path, textOf(profile))
      return [path]
    })
    const table = averages.table({ sortBy, rowLimit: numberOf(line, '--limit') ?? Infinity, width: terminal.columns ?? Infinity })
    const { totalTime, outsideTime, rows } = averages
    return {
      text: [table, ...written.map((path) => `Wrote ${path}`)].join('\n'),
      code: 0,
      data: { file, totalTime, outsideTime, rows, graphs: profile.graphCosts(), written },
    }
  })
}
