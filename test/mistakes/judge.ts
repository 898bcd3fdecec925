// Judges what a mistake leads to: an error of tensorfx whose message names what was called, the argument, its value and what to do, and whose stack begins in the program.
import { TensorfxError } from 'tensorfx'
import { valueText } from '../../src/protocol/index.ts'
import type { Mistake } from './draw.ts'

/** What is wrong with the answer to a mistake; null if nothing is. */
export function judge(mistake: Mistake, here: string): string | null {
  let error: unknown
  try {
    const result = mistake.run()
    return `accepted: gives ${valueText(result)}`
  } catch (thrown) {
    error = thrown
  }
  if (!(error instanceof TensorfxError)) return `a raw error: ${String(error)}`
  const said = error.message
  // What an in-place form refuses may be said of the operator without the underscore.
  const last = mistake.call.name.slice(mistake.call.name.lastIndexOf('.') + 1).replace(/_$/, '')
  if (!['linear', 'conv2d', 'batchNorm', 'layerNorm', 'embedding'].includes(last) && !said.includes(last)) return `does not name ${last}: ${said}`
  if (mistake.names.length > 0 && !mistake.names.some((name) => new RegExp(`(?<![\\w$])${name.replaceAll('$', '\\$')}(?![\\w$])`).test(said)))
    return `does not name ${mistake.names.join(' or ')}: ${said}`
  const namesItem = mistake.names.some((name) => new RegExp(`'${name}\\[\\d+\\]'.* got `).test(said))
  if (mistake.value !== undefined && !namesItem && !said.includes(valueText(mistake.value.is).replace(/ \(write await before it\)$/, '')))
    return `does not name the value ${valueText(mistake.value.is)}: ${said}`
  if (!mistake.fixes.some((fix) => fix.test(said))) return `does not say what to do (${mistake.fixes.join(' or ')}): ${said}`
  const [frame = 'none'] = (error.stack ?? '').split('\n').filter((line) => line.startsWith('    at '))
  return frame.includes(here) ? null : `the first frame is not the program's: ${frame.trim()}`
}
