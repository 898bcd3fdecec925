export function show(value: unknown, depth?: number): string
