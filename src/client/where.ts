import type * as queries from '../wire/query.js'

/** A condition on bodies of which nothing is known. */
type AnyCondition = NonNullable<queries.LatestQuery['where']>[number]

/**
 * Levels of objects and arrays within a body whose members are checked; below them any path is taken. A type may contain
 * itself, and each level makes the compiler slower by as many times as it has members.
 */
type Levels = [1]

/**
 * Compares a field of the body with a literal of the same JSON type. The field is a dotted path, or a JSON Pointer (RFC
 * 6901) where it begins with `/`. Short paths and values are checked against `T`, the type of the bodies, where it names its
 * members; pointers are not.
 */
export type WhereCondition<T = Record<string, unknown>> = string extends keyof T
  ? AnyCondition
  : [keyof T] extends [never]
    ? AnyCondition
    : MemberCondition<T, '', Levels> | Below<'/'>

/** A condition on a member of `T`, or of what is in it. */
type MemberCondition<T, Prefix extends string, Left extends unknown[]> = T extends object
  ? {
      [K in keyof T & string]-?: Comparison<`${Prefix}${K}`, T[K]> | Within<T[K], `${Prefix}${K}.`, Left>
    }[keyof T & string]
  : never

/** A condition on what is in a value; its path begins with `Prefix`. */
type Within<V, Prefix extends string, Left extends unknown[]> = unknown extends V
  ? Below<Prefix>
  : Left extends [unknown, ...infer Less]
    ? V extends readonly (infer I)[]
      ? Comparison<`${Prefix}${number}`, I> | Within<I, `${Prefix}${number}.`, Less>
      : MemberCondition<V, Prefix, Less>
    : V extends object
      ? Below<Prefix>
      : never

type Below<Prefix extends string> = AnyCondition & { field: `${Prefix}${string}` }

type Comparison<Field extends string, V> =
  | {
      field: Field
      op: Exclude<AnyCondition['op'], 'in' | 'exists'>
      value: Exclude<V, undefined>
    }
  | { field: Field; op: 'in'; value: readonly Exclude<V, undefined>[] }
  | { field: Field; op: 'exists'; value: boolean }
