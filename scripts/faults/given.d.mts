import type { Backend } from 'tensorfx/compile'

export function givenBackend(tell: (operator: string) => void): Backend
