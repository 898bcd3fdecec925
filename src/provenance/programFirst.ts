// How errors show their stack traces: the code around the program's innermost line, then the frames of the program, then those of tensorfx and of the host.
import { codeFrame, markOwn } from './codeFrame.ts'
import { parseStack } from './frame.ts'

/** The frames of a stack trace in this order, at most `limit` of the program's and of the others; without change if the program has none. */
export function programFirst(frames: string, limit: number): string {
  const innermost = parseStack(frames).at(-1)
  const lines = frames.split('\n')
  if (innermost === undefined) return lines.slice(0, limit).join('\n')
  markOwn([innermost])
  const code = codeFrame(innermost)
  const isOfProgram = (line: string): boolean => parseStack(line).length > 0
  const others = lines.filter((line) => !isOfProgram(line))
  return [
    ...(code === null ? [] : ['', code, '']),
    ...lines.filter(isOfProgram).slice(0, limit),
    ...(others.length === 0 ? [] : ['  within tensorfx and the host:']),
    ...others.slice(0, limit),
  ].join('\n')
}
