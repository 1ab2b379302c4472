FROM node:22-bookworm-slim AS build
WORKDIR /app
COPY package.json package-lock.json ./
COPY packages packages
RUN npm ci
COPY tsconfig.json tsconfig.console.json tsconfig.declared.json ./
COPY scripts scripts
COPY examples/verify.py examples/
COPY src src
COPY workers workers
RUN npm run build && npm prune --omit=dev
# Most of what the packages hold is for other systems, and for other versions of Node.
RUN find node_modules -name '*.node' ! -path '*linux*' -delete
RUN find node_modules/uWebSockets.js -name '*.node' ! -name "*_$(node -p process.versions.modules).node" -delete

# Debian with Node alone: no npm, no compiler.
FROM debian:bookworm-slim
COPY --from=build /usr/local/bin/node /usr/local/bin/node
RUN groupadd --gid 1000 node && useradd --uid 1000 --gid node --no-create-home --home-dir /data node
RUN mkdir -m 0700 /data && chown node:node /data
ENV NODE_ENV=production SERVICE_HOST=0.0.0.0 SERVICE_PORT=8787 SERVICE_DATA_DIR=/data
WORKDIR /app
COPY --from=build /app/package.json ./
COPY --from=build /app/node_modules node_modules
COPY --from=build /app/dist dist
COPY --from=build /app/packages/client packages/client
COPY LICENSE README.md ./
USER node
VOLUME /data
EXPOSE 8787
# The server finishes what is in flight, and ends.
STOPSIGNAL SIGTERM
# Exec form, so that the signal reaches the server.
CMD ["node", "--v8-pool-size=0", "dist/program/strandfast.js", "serve"]
HEALTHCHECK --interval=10s --timeout=3s --start-period=10s \
  CMD ["node", "-e", "fetch(`http://127.0.0.1:${process.env.SERVICE_PORT}/healthz`).then((answer) => process.exit(answer.ok ? 0 : 1), () => process.exit(1))"]
